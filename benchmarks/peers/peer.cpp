#include "peers/peer.h"

namespace assay::peers {

std::vector<PeerEntry>& peer_entries() {
  static std::vector<PeerEntry> entries;
  return entries;
}

std::vector<std::string>& library_versions() {
  static std::vector<std::string> versions;
  return versions;
}

std::vector<MatrixProduct>& matrix_products() {
  static std::vector<MatrixProduct> products;
  return products;
}

}  // namespace assay::peers
