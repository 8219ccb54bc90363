// Third-party implementations of what a challenge times, for comparison with its par.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/challenge.h"

namespace assay::peers {

// One operation of a library, set up for one case.
class Peer {
 public:
  virtual ~Peer() = default;
  // The timed operation.
  virtual void run() = 0;
  // Copies the results of the last run into the case's output buffers, for the challenge's check.
  virtual void store() = 0;
  // Handles of the buffers that store() fills; par fills the others.
  virtual std::vector<int> outputs() const = 0;
};

struct PeerCase {
  const CaseSpec& spec;
  const CasePlan& plan;
  BufferViews buffers;
  int threads;
};

struct PeerEntry {
  std::string challenge;
  std::string name;  // library and operation, for tables
  // Null if the library has no such operation for this case. Preparations that a user of the
  // library would not pay for on every call belong here.
  std::unique_ptr<Peer> (*make)(const PeerCase&);
};

// The operations of the libraries found at build time. Filled before main by Register.
std::vector<PeerEntry>& peer_entries();
// "torch 1.13.1", ...
std::vector<std::string>& library_versions();

// A library's single-precision matrix product, which gives the roofline of challenges that multiply
// matrices.
struct MatrixProduct {
  std::string name;
  void (*multiply)(int n, const float* a, const float* b, float* c, int threads);
};
std::vector<MatrixProduct>& matrix_products();

struct Register {
  explicit Register(PeerEntry entry) { peer_entries().push_back(std::move(entry)); }
  explicit Register(MatrixProduct product) { matrix_products().push_back(std::move(product)); }
  explicit Register(std::string version) { library_versions().push_back(std::move(version)); }
};

}  // namespace assay::peers
