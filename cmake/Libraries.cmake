# The vendor libraries, each under the name of its pkg-config file: PkgConfig::pq, …
find_package(PkgConfig REQUIRED)
foreach(pair pq:libpq hiredis:hiredis rdkafka:rdkafka microhttpd:libmicrohttpd uv:libuv sodium:libsodium
        jansson:jansson idn2:libidn2 protobuf_c:libprotobuf-c cmocka:cmocka)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 module)
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
endforeach()
find_package(nng CONFIG REQUIRED)
find_package(Threads REQUIRED)
find_program(PROTOC_C protoc-c REQUIRED)
