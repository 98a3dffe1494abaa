"""Model calls for the maintenance of memories and for conversations: create and settle them."""
