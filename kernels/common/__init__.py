"""What all kernels share: how a mesh is cut, how data are exchanged by each module, how a program speaks."""
