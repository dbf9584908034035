// The scalar tasks with ADOL-C, over the line protocol of benches/src/main.rs. "taped" gradients record anew each time, as the other
// sides do; built by benches/run with the compiler's -O3 -march=native.

#include <adolc/adolc.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using Function = std::function<adouble(const std::vector<adouble>&)>;

adouble product(const std::vector<adouble>& x) {
    adouble p = 1.0;
    for (const auto& v : x) p *= v;
    return p;
}

adouble rosenbrock(const std::vector<adouble>& x) {
    adouble s = 0.0;
    for (size_t i = 0; i + 1 < x.size(); ++i) {
        adouble a = x[i] - 1.0, b = x[i + 1] - x[i] * x[i];
        s += a * a + b * b * 100.0;
    }
    return s;
}

adouble sigmoid(const adouble& x) { return 1.0 / (1.0 + exp(-x)); }

adouble recurrent(const std::vector<adouble>& p) {
    adouble hidden = 0.1, cell = 0.0;
    for (int step = 0; step < 1000; ++step) {
        auto gate = [&](int k) { return adouble(hidden * p[k] + p[4 + k]); };
        adouble next = cell * sigmoid(gate(0)) + sigmoid(gate(1)) * tanh(gate(2));
        hidden = sigmoid(gate(3)) * tanh(next);
        cell = next;
    }
    return hidden;
}

adouble log_sum_exp(const std::vector<adouble>& x) {
    adouble s = 0.0;
    for (const auto& v : x) s += exp(v);
    return log(s);
}

std::vector<double> numbers(size_t n) {
    std::vector<double> x(n);
    for (size_t k = 1; k <= n; ++k) x[k - 1] = 0.5 + std::fmod(k * 0.6180339887498949, 1.0);
    return x;
}

void record(const Function& f, const std::vector<double>& x) {
    double y;
    trace_on(1);
    std::vector<adouble> v(x.size());
    for (size_t k = 0; k < x.size(); ++k) v[k] <<= x[k];
    adouble result = f(v);
    result >>= y;
    trace_off();
}

std::function<void()> taped(Function f, size_t n) {
    auto x = numbers(n);
    std::vector<double> g(n);
    return [=]() mutable {
        record(f, x);
        gradient(1, static_cast<int>(n), x.data(), g.data());
    };
}

std::function<void()> hessian_of_ten() {
    auto x = numbers(10);
    std::vector<double> storage(100);
    std::vector<double*> rows(10);
    return [=]() mutable {
        for (int k = 0; k < 10; ++k) rows[k] = &storage[10 * k];
        record(rosenbrock, x);
        hessian(1, 10, x.data(), rows.data());
    };
}

int main() {
    const std::map<std::string, std::function<std::function<void()>()>> tasks = {
        {"gradient/rosenbrock_10", [] { return taped(rosenbrock, 10); }},
        {"gradient/rosenbrock_1000", [] { return taped(rosenbrock, 1000); }},
        {"gradient/product_10000", [] { return taped(product, 10000); }},
        {"gradient/log_sum_exp_10000", [] { return taped(log_sum_exp, 10000); }},
        {"gradient/recurrent_8", [] { return taped(recurrent, 8); }},
        {"hessian/rosenbrock_10", [] { return hessian_of_ten(); }},
    };
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string kind, name;
        int threads = 1;
        double seconds = 0;
        words >> kind >> name >> threads >> seconds;
        if (kind == "hello") {
            std::cout << "ADOL-C 2.7";
        } else if (kind == "list") {
            for (const auto& task : tasks) std::cout << task.first << ' ';
        } else if (kind == "time" && tasks.count(name)) {
            using Clock = std::chrono::steady_clock;
            auto run = tasks.at(name)();
            for (int k = 0; k < 3; ++k) run();
            auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
            auto start = Clock::now();
            for (int k = 0; k < 3 || (since(start) < seconds && k < 200); ++k) {
                auto begin = Clock::now();
                run();
                std::printf("%.4e ", since(begin));
            }
            std::fflush(stdout);
        } else {
            std::cout << "error: cannot read " << line;
        }
        std::cout << std::endl;
    }
}
