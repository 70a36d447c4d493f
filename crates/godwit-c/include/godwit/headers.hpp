/**
 * @file
 * @brief godwit::headers, those of requests and responses.
 */
#ifndef GODWIT_HEADERS_HPP
#define GODWIT_HEADERS_HPP

#include "event.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace godwit {

/** Names and values, in their order. Names are in lower case where they were received. */
class headers {
public:
    using value_type = std::pair<std::string, std::string>;

    headers() = default;
    headers(std::initializer_list<value_type> all) : all_(all) {}

    /** Those of an event. */
    static headers of(const godwit_event &event) {
        headers made;
        made.all_.reserve(static_cast<std::size_t>(event.header_count));
        for (std::uint64_t index = 0; index < event.header_count; ++index) {
            const godwit_header &each = event.headers[index];
            made.all_.emplace_back(std::string(each.name, static_cast<std::size_t>(each.name_length)),
                                   std::string(each.value, static_cast<std::size_t>(each.value_length)));
        }
        return made;
    }

    /** Adds one, also if there is one of this name. */
    void add(std::string name, std::string value) { all_.emplace_back(std::move(name), std::move(value)); }

    /** The first value of this name, in whichever case it is written. */
    std::optional<std::string_view> find(std::string_view name) const {
        for (const value_type &each : all_) {
            if (is_same(each.first, name)) {
                return each.second;
            }
        }
        return std::nullopt;
    }

    auto begin() const noexcept { return all_.begin(); }
    auto end() const noexcept { return all_.end(); }
    std::size_t size() const noexcept { return all_.size(); }
    bool empty() const noexcept { return all_.empty(); }

    /** As the C interface takes them; they point to what is here. */
    std::vector<godwit_header> raw() const {
        std::vector<godwit_header> made;
        made.reserve(all_.size());
        for (const value_type &each : all_) {
            godwit_header header = detail::sized<godwit_header>();
            header.name = each.first.data();
            header.name_length = each.first.size();
            header.value = each.second.data();
            header.value_length = each.second.size();
            made.push_back(header);
        }
        return made;
    }

private:
    static char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }
    static bool is_same(std::string_view one, std::string_view other) {
        if (one.size() != other.size()) {
            return false;
        }
        for (std::size_t index = 0; index < one.size(); ++index) {
            if (lower(one[index]) != lower(other[index])) {
                return false;
            }
        }
        return true;
    }

    std::vector<value_type> all_;
};

} // namespace godwit

#endif
