#include "ask/curl_transport.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "ask/chat.h"
#include "assay/error.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::ask {
namespace {

constexpr long kConnectTimeout = 30;  // seconds
constexpr std::size_t kLongestHeader = 1024;

struct CurlEasyEnd {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct CurlListEnd {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// State shared with a transfer's callbacks.
struct CurlTransfer {
  HttpResponse response;
  const Transport::OnBytes& on_bytes;
  std::string refusal;  // why the receiver wants no more
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view trimmed_header(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::size_t on_curl_header(const char* bytes, std::size_t, std::size_t size, void* data) {
  auto& transfer = *static_cast<CurlTransfer*>(data);
  const std::string_view line(bytes, size);
  if (line.starts_with("HTTP/")) {  // of this response, after any from a proxy or "100"
    transfer.response = {};
    const std::size_t blank = line.find(' ');
    if (blank != std::string_view::npos)
      transfer.response.status = std::atoi(std::string(line.substr(blank + 1, 3)).c_str());
    return size;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  const std::string name = lower_case(line.substr(0, colon));
  const std::string value(trimmed_header(line.substr(colon + 1)).substr(0, kLongestHeader));
  if (name == "content-type") transfer.response.content_type = lower_case(value);
  if (name == "retry-after") transfer.response.retry_after = value;
  if (name == "location") transfer.response.location = value;
  return size;
}

std::size_t on_curl_bytes(const char* bytes, std::size_t, std::size_t size, void* data) {
  auto& transfer = *static_cast<CurlTransfer*>(data);
  try {
    transfer.on_bytes(transfer.response, {bytes, size});
  } catch (const std::exception& e) {
    transfer.refusal = e.what();
    return size == 0 ? 1 : 0;  // aborts the transfer
  }
  return size;
}

int on_curl_progress(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return stop_signal() != 0 ? 1 : 0;
}

Delivery delivery_of(CURLcode code) {
  switch (code) {
    case CURLE_OK: return Delivery::whole;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT: return Delivery::unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM: return Delivery::insecure;
    case CURLE_OPERATION_TIMEDOUT: return Delivery::timed_out;
    case CURLE_WRITE_ERROR:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_FAILED_INIT:
    case CURLE_OUT_OF_MEMORY: return Delivery::refused;
    default: return Delivery::cut;
  }
}

}  // namespace

CurlTransport::CurlTransport(std::string agent) : agent_(std::move(agent)) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
    throw Error("libcurl cannot be set up: is the machine out of memory?");
}

HttpResponse CurlTransport::post(const HttpRequest& request, const OnBytes& on_bytes) {
  check_stop();
  CurlTransfer transfer{{}, on_bytes, {}};
  const std::unique_ptr<CURL, CurlEasyEnd> curl(curl_easy_init());
  if (curl == nullptr) {
    transfer.response.delivery = Delivery::refused;
    transfer.response.problem = "libcurl has no handle to give";
    return transfer.response;
  }
  std::unique_ptr<curl_slist, CurlListEnd> headers;
  const auto add_header = [&](const std::string& line) {
    if (curl_slist* longer = curl_slist_append(headers.get(), line.c_str())) {
      (void)headers.release();  // now owned by the longer list
      headers.reset(longer);
    }
  };
  add_header("Content-Type: application/json");
  add_header("Accept: application/json, text/event-stream");
  add_header("Expect:");  // no round trip for "100 Continue"
  for (const Header& h : request.headers) add_header(h.name + ": " + h.value);

  CURL* handle = curl.get();
  char error[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  // A proxy has another loopback, and would see the key.
  if (goes_to_loopback(request.url)) curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, agent_.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(handle, CURLOPT_POST, 1L);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(handle, CURLOPT_ACCEPT_ENCODING, "");  // everything libcurl can decode
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectTimeout);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout * 1000));
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);  // a model may think for minutes
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_curl_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_curl_bytes);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_curl_progress);

  const CURLcode code = curl_easy_perform(handle);
  check_stop();
  HttpResponse response = transfer.response;
  response.delivery = delivery_of(code);
  if (code == CURLE_OK) return response;
  response.problem = printable(error[0] != '\0' ? error : curl_easy_strerror(code), 1);
  if (!transfer.refusal.empty()) response.problem = transfer.refusal;
  return response;
}

}  // namespace assay::ask
