#include "cpu/dispatch.h"

#include <algorithm>
#include <stdexcept>

#include "cpu/cpu.h"

namespace latentbit {
namespace {

struct Candidate {
  const Kernels& (*kernels)();
  std::vector<std::string> needs;
};

// Best first.
std::vector<Candidate> candidates() {
  return {
#if defined(LATENTBIT_X86)
      {amx_kernels,
       {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vpopcntdq", "avx512vnni",
        "amx_int8"}},
      {avx512_kernels,
       {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vpopcntdq", "avx512vnni"}},
      {avx512bw_vnni_kernels, {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"}},
      {avx512bw_kernels, {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}},
      {avx2_kernels, {"avx2", "fma"}},
#endif
#if defined(__aarch64__)
      {neon_dot_kernels, {"neon", "dotprod"}},
      {neon_kernels, {"neon"}},
#endif
      {scalar_kernels, {}},
  };
}

std::vector<const Kernels*> runnable() {
  const std::vector<std::string> features = cpu_features();
  std::vector<const Kernels*> found;
  for (const Candidate& c : candidates()) {
    const auto has = [&](const std::string& f) {
      return std::count(features.begin(), features.end(), f) > 0;
    };
    if (std::all_of(c.needs.begin(), c.needs.end(), has)) found.push_back(&c.kernels());
  }
  return found;
}

}  // namespace

std::vector<std::string> available() {
  std::vector<std::string> names;
  for (const Kernels* k : runnable()) names.push_back(k->name);
  return names;
}

const Kernels& kernels_named(const std::string& name) {
  for (const Kernels* k : runnable())
    if (name == k->name) return *k;
  throw std::invalid_argument("no kernels '" + name + "' for this CPU");
}

}  // namespace latentbit
