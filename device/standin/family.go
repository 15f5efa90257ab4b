package standin

import "strings"

// family is a CUDA library in all its versions.
type family struct {
	// library is the SONAME up to ".so".
	library string
	// prefixes begin the names of the functions of the library.
	prefixes []string
}

// families lists the CUDA libraries that a stand-in can replace.
var families = []family{
	{"libcuda", []string{"cu"}},
	{"libcudart", []string{"cuda", "__cuda"}},
	{"libcublas", []string{"cublas"}},
	{"libcublasLt", []string{"cublasLt"}},
	{"libcudnn", []string{"cudnn"}},
	{"libcudss", []string{"cudss"}},
	{"libcufft", []string{"cufft"}},
	{"libcufile", []string{"cuFile"}},
	{"libcupti", []string{"cupti"}},
	{"libcurand", []string{"curand"}},
	{"libcusolver", []string{"cusolver"}},
	{"libcusolverMg", []string{"cusolverMg"}},
	{"libcusparse", []string{"cusparse"}},
	{"libcusparseLt", []string{"cusparseLt"}},
	{"libnccl", []string{"nccl"}},
	{"libnvJitLink", []string{"nvJitLink", "__nvJitLink"}},
	{"libnvToolsExt", []string{"nvtx"}},
	{"libnvidia-ml", []string{"nvml"}},
	{"libnvrtc", []string{"nvrtc"}},
	{"libnvshmem_host", []string{"nvshmem", "nvshmemi", "nvshmemx"}},
}

// familyOf returns the family of a SONAME, "" for a library of another kind.
func familyOf(soName string) string {
	base, _, _ := strings.Cut(soName, ".so")
	for _, f := range families {
		if f.library == base {
			return base
		}
	}
	return ""
}

// familyOfName returns the family whose functions are named like name, "" without such a family.
// The longest prefix decides; an upper-case letter or an underscore must follow it.
func familyOfName(name string) string {
	library, longest := "", 0
	for _, f := range families {
		for _, p := range f.prefixes {
			if len(p) > longest && len(name) > len(p) && strings.HasPrefix(name, p) && beginsWord(name[len(p)]) {
				library, longest = f.library, len(p)
			}
		}
	}
	return library
}

// beginsWord reports whether a character begins the next word of a function's name.
func beginsWord(c byte) bool { return 'A' <= c && c <= 'Z' || c == '_' }
