// Tries what a CPU announces and a virtual machine may refuse.
#pragma once

namespace latentbit {

// What `probe` returns, or false if it executes an instruction that does not exist here. One call at a time.
bool runs_without_trap(bool (*probe)());

}  // namespace latentbit
