// Errors that are not a submission's fault.
#pragma once

#include <stdexcept>

namespace assay {

// A fault of the harness or its user. main prints it and exits with 2; in a cell the verdict is JE.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A challenge's mistake: its spec, its plan or its code makes promises that do not fit together.
class ChallengeError : public Error {
 public:
  using Error::Error;
};

}  // namespace assay
