#include "util/thread_stop.h"

#include <utility>

namespace assay {
namespace {

thread_local std::function<bool()> t_asked;  // empty: nobody can ask

}  // namespace

ThreadStop::ThreadStop(std::function<bool()> asked) { t_asked = std::move(asked); }
ThreadStop::~ThreadStop() { t_asked = nullptr; }

bool thread_was_asked() { return t_asked && t_asked(); }

}  // namespace assay
