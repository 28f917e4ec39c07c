#include "cpu/cpu.h"

#include "cpu/amx.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace latentbit {

#if defined(LATENTBIT_SIMDE)  // a test with emulated intrinsics

std::vector<std::string> cpu_features() {
  return {"avx2",       "fma",     "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vpopcntdq",
          "avx512vnni", "amx_int8"};
}

#elif defined(__x86_64__)

namespace {

// XCR0 tells which register states the OS saves on a context switch. A CPU flag
// without it means a SIGILL or, worse, corrupted upper halves.
unsigned long long saved_register_states() {
  unsigned eax, edx;
  __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return (static_cast<unsigned long long>(edx) << 32) | eax;
}

}  // namespace

std::vector<std::string> cpu_features() {
  std::vector<std::string> names;
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return names;
  const unsigned leaf1_ecx = ecx;
  if (leaf1_ecx & bit_POPCNT) names.push_back("popcnt");
  if (!(leaf1_ecx & bit_OSXSAVE)) return names;

  constexpr unsigned long long kXmmYmm = 0x6, kZmm = 0xe0, kTiles = 0x60000;
  const unsigned long long saved = saved_register_states();
  if ((saved & kXmmYmm) != kXmmYmm) return names;
  if (leaf1_ecx & bit_FMA) names.push_back("fma");
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return names;
  if (ebx & bit_AVX2) names.push_back("avx2");
  if ((saved & kZmm) == kZmm) {
    if (ebx & bit_AVX512F) names.push_back("avx512f");
    if (ebx & bit_AVX512BW) names.push_back("avx512bw");
    if (ebx & bit_AVX512DQ) names.push_back("avx512dq");
    if (ebx & bit_AVX512VL) names.push_back("avx512vl");
    if (ecx & bit_AVX512VPOPCNTDQ) names.push_back("avx512vpopcntdq");
    if (ecx & bit_AVX512VNNI) names.push_back("avx512vnni");
    constexpr unsigned kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
    const bool announced = (edx & kAmxTile) && (edx & kAmxInt8) && (saved & kTiles) == kTiles;
    if (announced && amx_granted()) names.push_back("amx_int8");
  }
  return names;
}

#elif defined(__aarch64__)

std::vector<std::string> cpu_features() {
  std::vector<std::string> names = {"neon"};  // part of the base architecture
#if defined(__linux__)
  constexpr unsigned long kDotProduct = 1ul << 20;  // HWCAP_ASIMDDP
  if (getauxval(AT_HWCAP) & kDotProduct) names.push_back("dotprod");
#endif
  return names;
}

#else

std::vector<std::string> cpu_features() { return {}; }

#endif

}  // namespace latentbit
