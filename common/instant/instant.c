// SPDX-License-Identifier: MIT
#include "common/instant/instant.h"

#include <inttypes.h>
#include <stdio.h>

#define DAYS_TO_1970 INT64_C(719528) // from 0000-01-01
#define DAYS_PER_400_YEARS INT64_C(146097)
#define INSTANT_MIN (-DAYS_TO_1970 * US_PER_DAY) // 0000-01-01T00:00:00Z

static const int days_before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

struct date {
    int64_t year;
    int month, day; // from 1
};

static int64_t floor_div(int64_t number, int64_t divisor) {
    return number / divisor - (number % divisor < 0 ? 1 : 0);
}

static int64_t floor_mod(int64_t number, int64_t divisor) {
    int64_t rest = number % divisor;
    return rest < 0 ? rest + divisor : rest;
}

static bool is_leap(int64_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

// From 0000-01-01, a leap year's first day, to the year's first day.
static int64_t days_before_year(int64_t year) {
    int64_t last = year - 1;
    return year * 365 + floor_div(last, 4) - floor_div(last, 100) + floor_div(last, 400) + 1;
}

static int64_t first_of_month(int64_t year, int month) {
    return days_before_month[month - 1] + (month > 2 && is_leap(year) ? 1 : 0);
}

static int days_in_month(int64_t year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

static int64_t day_of_date(struct date date) {
    return days_before_year(date.year) + first_of_month(date.year, date.month) + date.day - 1 - DAYS_TO_1970;
}

static struct date date_of_day(int64_t day) {
    day += DAYS_TO_1970;
    // The mean year's length gives the year, or one beside it.
    int64_t year = floor_div(day * 400, DAYS_PER_400_YEARS);
    while (days_before_year(year) > day)
        year--;
    while (days_before_year(year + 1) <= day)
        year++;
    day -= days_before_year(year);
    int month = 12;
    while (first_of_month(year, month) > day)
        month--;
    return (struct date){year, month, (int)(day - first_of_month(year, month)) + 1};
}

struct reader {
    const char *at, *end;
};

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool take_digits(struct reader *reader, int count, int max, int *out) {
    if (reader->end - reader->at < count)
        return false;
    int number = 0;
    for (int i = 0; i < count; i++) {
        if (!is_digit(reader->at[i]))
            return false;
        number = number * 10 + (reader->at[i] - '0');
    }
    if (number > max)
        return false;
    reader->at += count;
    *out = number;
    return true;
}

// `bytes`: the characters that are allowed here.
static bool take_one_of(struct reader *reader, const char *bytes, char *out) {
    for (; reader->at < reader->end && *bytes != '\0'; bytes++)
        if (*reader->at == *bytes) {
            *out = *reader->at++;
            return true;
        }
    return false;
}

static bool take_byte(struct reader *reader, const char *bytes) {
    char ignored;
    return take_one_of(reader, bytes, &ignored);
}

static bool take_date(struct reader *reader, struct date *out) {
    int year;
    int month;
    int day;
    if (!take_digits(reader, 4, 9999, &year) || !take_byte(reader, "-") ||
        !take_digits(reader, 2, 12, &month) || !take_byte(reader, "-") || !take_digits(reader, 2, 31, &day))
        return false;
    if (month == 0 || day == 0 || day > days_in_month(year, month))
        return false;
    *out = (struct date){year, month, day};
    return true;
}

static bool take_fraction(struct reader *reader, int64_t *us) {
    *us = 0;
    if (!take_byte(reader, "."))
        return true;
    if (reader->at == reader->end || !is_digit(*reader->at))
        return false;
    for (int64_t unit = US_PER_S / 10; reader->at < reader->end && is_digit(*reader->at); reader->at++) {
        *us += (*reader->at - '0') * unit;
        unit /= 10; // 0 past the microsecond: the rest is cut
    }
    return true;
}

static bool take_time(struct reader *reader, int64_t *us) {
    int hour;
    int minute;
    int second;
    int64_t fraction;
    if (!take_digits(reader, 2, 23, &hour) || !take_byte(reader, ":") ||
        !take_digits(reader, 2, 59, &minute) || !take_byte(reader, ":") ||
        !take_digits(reader, 2, 59, &second) || !take_fraction(reader, &fraction))
        return false;
    *us = (((int64_t)hour * 60 + minute) * 60 + second) * US_PER_S + fraction;
    return true;
}

static bool take_offset(struct reader *reader, int64_t *us) {
    char sign;
    if (!take_one_of(reader, "Zz+-", &sign))
        return false;
    if (sign != '+' && sign != '-') {
        *us = 0;
        return true;
    }
    int hours;
    int minutes;
    if (!take_digits(reader, 2, 23, &hours) || !take_byte(reader, ":") ||
        !take_digits(reader, 2, 59, &minutes))
        return false;
    *us = ((int64_t)hours * 60 + minutes) * 60 * (sign == '-' ? -US_PER_S : US_PER_S);
    return true;
}

bool instant_parse(const char *text, size_t len, int64_t *out) {
    struct reader reader = {text, text + len};
    struct date date;
    int64_t time;
    int64_t offset;
    if (!take_date(&reader, &date) || !take_byte(&reader, "Tt") || !take_time(&reader, &time) ||
        !take_offset(&reader, &offset) || reader.at != reader.end)
        return false;
    int64_t instant = day_of_date(date) * US_PER_DAY + time - offset;
    if (instant < INSTANT_MIN || instant > INSTANT_MAX)
        return false;
    *out = instant;
    return true;
}

bool instant_parse_day(const char *text, size_t len, int32_t *out) {
    struct reader reader = {text, text + len};
    struct date date;
    if (!take_date(&reader, &date) || reader.at != reader.end)
        return false;
    *out = (int32_t)day_of_date(date);
    return true;
}

// Appends ".123456" without trailing zeros.
static size_t put_fraction(char *out, int64_t us) {
    size_t len = 0;
    out[len++] = '.';
    for (int64_t unit = US_PER_S / 10; us > 0; unit /= 10) {
        out[len++] = (char)('0' + us / unit);
        us %= unit;
    }
    return len;
}

void instant_format(int64_t instant, char out[INSTANT_TEXT]) {
    int64_t day = floor_div(instant, US_PER_DAY);
    int64_t second = floor_mod(instant, US_PER_DAY) / US_PER_S;
    int64_t fraction = floor_mod(instant, US_PER_S);
    struct date date = date_of_day(day);
    int len = snprintf(out, INSTANT_TEXT, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02d", date.year, date.month,
        date.day, (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60));
    // Years of 64-bit microseconds have at most 6 digits and a sign: 30 characters in all.
    REQUIRE(len > 0 && (size_t)len + sizeof ".123456Z" <= INSTANT_TEXT);
    size_t end = (size_t)len;
    if (fraction > 0)
        end += put_fraction(out + end, fraction);
    out[end++] = 'Z';
    out[end] = '\0';
}

void instant_format_day(int32_t day, char out[INSTANT_TEXT]) {
    struct date date = date_of_day(day);
    int len = snprintf(out, INSTANT_TEXT, "%04" PRId64 "-%02d-%02d", date.year, date.month, date.day);
    REQUIRE(len > 0 && len < INSTANT_TEXT);
}

int32_t instant_day(int64_t instant) {
    return (int32_t)floor_div(instant, US_PER_DAY);
}
