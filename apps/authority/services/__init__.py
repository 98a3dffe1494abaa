"""Grant, delegate and revoke capabilities, set the trust in agents, and decide requests for approval."""
