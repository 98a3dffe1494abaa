"""OpenAI's protocol, served: models, chat completions, embeddings."""
