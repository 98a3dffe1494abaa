from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("selves", "0002_mind_at_work")]

    operations = [
        migrations.AddIndex(
            model_name="peermodel",
            index=models.Index(
                condition=models.Q(("peer__isnull", False)),
                fields=["tenant", "peer"],
                name="selves_peer_by_peer",
            ),
        ),
    ]
