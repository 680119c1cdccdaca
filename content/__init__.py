"""What the book runs: cases (`zoo`), known errors (`errors`), architectures of libraries (`atlas`). Entry points register them."""
