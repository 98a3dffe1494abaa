"""Read the page of a tenant's models: its default, its keys of providers, and the models that they list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from apps.calls.models import ProviderKey
from apps.calls.services.provider_keys import listed_handles
from apps.heartbeats.services.processes import fleet_model
from apps.tenants.models import Tenant
from apps.tenants.scope import current_tenant
from arbor.adapters.credentials import TENANT_PROVIDERS
from arbor.adapters.model_list import MAX_LISTED
from arbor.models.handles import REFLEX_HANDLE, Provider, is_reflex

#: The names of providers as people know them.
PROVIDER_NAMES: Mapping[Provider, str] = MappingProxyType(
    {
        Provider.OPENAI: "OpenAI, or a server with its protocol",
        Provider.ANTHROPIC: "Anthropic",
        Provider.OPENROUTER: "OpenRouter",
        Provider.GEMINI: "Google Gemini",
        Provider.OLLAMA: "Ollama",
        Provider.VLLM: "vLLM",
        Provider.LLAMACPP: "llama.cpp",
    }
)


@dataclass(frozen=True, kw_only=True)
class ProviderChoice:
    """A provider that the form offers."""

    value: str
    title: str
    chosen: bool


@dataclass(frozen=True, kw_only=True)
class ModelsPage:
    """The models of a tenant."""

    #: The default model that the tenant chose; empty: the installation's.
    default: str
    #: The models of the installation's workers, separated by commas.
    installation: str
    keys: Sequence[ProviderKey]
    providers: Sequence[ProviderChoice]
    #: Handles that the fields for models suggest.
    suggestions: Sequence[str]
    #: The values that a person entered in the form for a key, without the key.
    base_url: str = ""
    model: str = ""

    #: The number of models at which the list of a provider ends.
    max_listed = MAX_LISTED

    @property
    def in_use(self) -> str:
        """Return the model of agents without one of their own."""
        return self.default or self.installation

    @property
    def is_reflex(self) -> bool:
        """Return whether agents without a model of their own decide by the reflex policy."""
        return is_reflex(self.in_use)


def read_models(parameters: Mapping[str, str]) -> ModelsPage:
    """Read the page of the current tenant; the parameters of its address fill in the form for a key."""
    chosen, keys = parameters.get("provider", ""), list(ProviderKey.objects.defer("sealed_key"))
    return ModelsPage(
        default=default_of_tenant(),
        installation=fleet_model(),
        keys=keys,
        providers=[
            ProviderChoice(value=name.value, title=PROVIDER_NAMES[name], chosen=name == chosen)
            for name in TENANT_PROVIDERS
        ],
        suggestions=[*listed_handles((key.provider, key.listed) for key in keys), str(REFLEX_HANDLE)],
        base_url=parameters.get("base_url", ""),
        model=parameters.get("model", ""),
    )


def default_of_tenant() -> str:
    """Return the default model of the current tenant; empty: the installation's."""
    default: str = Tenant.objects.values_list("default_model", flat=True).get(id=current_tenant())
    return default


def model_suggestions() -> list[str]:
    """Return the handles that fields for models suggest: of models that the tenant's providers list, and of the reflex policy."""
    listed = listed_handles(ProviderKey.objects.values_list("provider", "listed"))
    return [*listed, str(REFLEX_HANDLE)]


def model_in_use(model: str) -> str:
    """Return the model that an agent uses: its own, `model`, or else the tenant's default or the installation's."""
    return model or default_of_tenant() or fleet_model()
