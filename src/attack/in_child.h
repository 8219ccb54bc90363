// Runs a function in a separate process, which may hang or die without harm to the caller.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "util/fd.h"

namespace assay::attack {

class Child {
 public:
  // Runs `work` in a fork of this process. Only the calling thread exists there, so `work` must not
  // wait for others. The child dies with this process. Throws Error if no process can be started.
  Child(const std::function<std::string()>& work, double deadline);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills the child and all its descendants

  enum class State { running, done, died, hung };
  // The child's state. Kills it and all its descendants if it is past its deadline. Poll this while
  // the child is running.
  State look();
  // What `work` returned, or why it returned nothing: a signal or an error message.
  const std::string& said() const { return said_; }
  double seconds() const;

 private:
  State end(State, std::string said);

  pid_t pid_ = -1;
  Fd answer_;
  double begin_ = 0, deadline_ = 0, ended_ = 0;
  State state_ = State::running;
  std::string said_;
};

}  // namespace assay::attack
