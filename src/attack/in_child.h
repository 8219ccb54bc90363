// A function in a process of its own, which may hang or die without harm to who asked.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "util/fd.h"

namespace assay::attack {

class Child {
 public:
  // Starts `work` in a fork of this process. Only the thread that calls goes on there; `work` must
  // not wait for others. The child ends with this process. Throws Error when there is no process to
  // be had.
  Child(const std::function<std::string()>& work, double deadline);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills it and all that it started

  enum class State { running, done, died, hung };
  // What has become of it; one that is beyond its deadline is killed, with all that it started and
  // all that these started. To be asked again while it is running.
  State look();
  // What `work` returned, or why there is nothing: a signal, a message.
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
