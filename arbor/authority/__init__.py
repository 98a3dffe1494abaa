"""Rules of what an agent may do: capabilities, signed requests, trust, approvals."""
