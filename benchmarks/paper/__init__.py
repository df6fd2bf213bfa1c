"""The paper's experiments on this engine, against the engines that the paper compares with."""
