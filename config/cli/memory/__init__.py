"""`arbor memory`: commands about an agent's memories and the results of maintenance."""
