"""Documents split into passages, skills, and the merge of search results, as pure rules."""
