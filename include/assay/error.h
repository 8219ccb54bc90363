// What goes wrong and is no submission's fault.
#pragma once

#include <stdexcept>

namespace assay {

// A fault of the harness or of its user. main prints it and exits 2; in a cell the verdict is JE.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The mistake of a challenge: what its spec, its plan or its code promise does not fit together.
class ChallengeError : public Error {
 public:
  using Error::Error;
};

}  // namespace assay
