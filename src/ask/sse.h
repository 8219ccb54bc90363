// Server-sent events (WHATWG HTML, 9.2.6); the chat protocol uses only their data.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace assay::ask {

// Fed with bytes in arbitrary pieces. Lines end with LF, CR or CRLF; an empty line ends an event;
// comments and other fields are ignored; an event cut off by the end of the stream is dropped.
class EventParser {
 public:
  // `on_data` is called with the data of each event that has any. `limit`: maximum bytes of one
  // event; beyond it feed() throws Error.
  EventParser(std::function<void(const std::string&)> on_data, std::size_t limit)
      : on_data_(std::move(on_data)), limit_(limit) {}

  void feed(std::string_view bytes);

 private:
  void line_ended();

  std::function<void(const std::string&)> on_data_;
  std::size_t limit_;
  std::string line_, data_;
  bool has_data_ = false, after_cr_ = false, first_line_ = true;
};

}  // namespace assay::ask
