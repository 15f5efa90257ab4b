"""Vramyard's modules for PyTorch programs. vramyard.meta estimates the memory of a program without CUDA."""
