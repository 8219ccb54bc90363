// Loops over all cores for generators, references and checks.
#pragma once

#include <cstdint>
#include <functional>

namespace assay {

// Calls body(begin, end) on disjoint chunks that cover [0, n), on up to parallel_threads() threads.
// Chunks have at least `grain` iterations. If there are several chunks, nested loops run serially.
// Rethrows the first exception of a chunk.
void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

// Cores that the process may run on, at least 1. The system is asked only once.
int available_cores();

// Threads that parallel_for uses, initially one per core. Thread-local, so concurrent jobs can be
// held to one each.
int parallel_threads();
void set_parallel_threads(int n);

}  // namespace assay
