"""The ways to capture a model: by tracing runs, or with torch.export."""
