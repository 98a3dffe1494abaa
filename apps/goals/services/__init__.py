"""Goals as an agent, a person or a template changes them."""
