"""`arbor memory`: what an agent remembers, and what maintenance has made of it."""
