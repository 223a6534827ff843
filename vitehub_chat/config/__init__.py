"""Configuration: what people declare, read strictly and lowered to policies."""
