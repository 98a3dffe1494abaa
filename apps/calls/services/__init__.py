"""Write external calls, and record their cost and the daily usage of agents."""
