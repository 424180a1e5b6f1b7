// A target needs a source for its headers to be compiled with.
int main() { return 0; }
