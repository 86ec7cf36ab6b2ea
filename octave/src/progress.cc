// Waiting in the modern API, and requests: see progress.h.

#include "progress.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <thread>

#include <octave/interpreter.h>
#include <octave/oct-map.h>
#include <octave/ov-base.h>
#include <octave/ov-scalar.h>
#include <octave/quit.h>

namespace limosa
{
namespace
{
// A send or receive that the program has started and not waited for.
struct Pending {
    // Null for a receive.
    std::unique_ptr<Sending> sending;

    // Of a receive.
    int source = 0, tag = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    bool has_value = false;
    octave_value value;
    MPI_Status status;

    bool is_receive() const
    {
        return !sending;
    }

    bool wants(MPI_Comm from, const MPI_Status &envelope) const
    {
        return comm == from && (source == MPI_ANY_SOURCE || source == envelope.MPI_SOURCE) &&
               (tag == MPI_ANY_TAG || tag == envelope.MPI_TAG);
    }
};

// Requests by number. Numbers are never used again. Never destroyed: values of Octave may go after static objects.
std::map<std::uint32_t, Pending> &pending = *new std::map<std::uint32_t, Pending>;
std::uint32_t latest = 0;

// Numbers of receives without a message, oldest first.
std::list<std::uint32_t> &waiting = *new std::list<std::uint32_t>;

// Withdrawn receives that had a message, by number: their messages are older than any that has not been taken.
std::map<std::uint32_t, Pending> &kept = *new std::map<std::uint32_t, Pending>;

void withdraw(std::uint32_t number);

// Withdraws a request when the last copy of its value goes, unless the number is known elsewhere.
struct Ticket {
    std::uint32_t number;
    bool is_number_taken = false;

    explicit Ticket(std::uint32_t its_number) : number(its_number)
    {
    }
    Ticket(const Ticket &) = delete;
    Ticket &operator=(const Ticket &) = delete;
    ~Ticket()
    {
        if (!is_number_taken)
            withdraw(number);
    }
};

// The value of a request: a number that holds the ticket. Whatever takes the number out of it leaves a plain one.
class Request : public octave_base_value
{
  public:
    Request() : Request(0)
    {
    }
    explicit Request(std::uint32_t number) : m_ticket(std::make_shared<Ticket>(number))
    {
    }

    static void register_type()
    {
        s_type = octave::interpreter::the_interpreter()->get_type_info().register_type("limosa request", "double",
                                                                                       octave_value(new Request()));
    }
    int type_id() const override
    {
        return s_type;
    }
    std::string type_name() const override
    {
        return "limosa request";
    }
    std::string class_name() const override
    {
        return "double";
    }

    std::uint32_t number() const
    {
        return m_ticket->number;
    }

    octave_base_value *clone() const override
    {
        return new Request(*this);
    }
    octave_base_value *empty_clone() const override
    {
        return new octave_scalar();
    }
    type_conv_info numeric_conversion_function() const override
    {
        return type_conv_info(as_number, octave_scalar::static_type_id());
    }
    octave_value full_value() const override
    {
        return taken();
    }
    octave_value as_double() const override
    {
        return taken();
    }
    octave_value resize(const dim_vector &dims, bool fill) const override
    {
        return taken().resize(dims, fill);
    }
    octave_value reshape(const dim_vector &dims) const override
    {
        return taken().reshape(dims);
    }
    octave_value permute(const Array<int> &order, bool is_inverse) const override
    {
        return taken().permute(order, is_inverse);
    }
    octave_value squeeze() const override
    {
        return octave_value(const_cast<Request *>(this), true);
    }
    octave_value do_index_op(const octave_value_list &index, bool resize_ok) override
    {
        return taken().index_op(index, resize_ok);
    }
    octave_value subsref(const std::string &type, const std::list<octave_value_list> &index) override
    {
        return taken().subsref(type, index);
    }
    octave_value_list subsref(const std::string &type, const std::list<octave_value_list> &index, int) override
    {
        return subsref(type, index);
    }
    octave_value subsasgn(const std::string &type, const std::list<octave_value_list> &index,
                          const octave_value &value) override
    {
        return numeric_assign(type, index, value);
    }
    octave_value map(unary_mapper_t mapper) const override
    {
        octave_scalar plain(taken_number());
        return plain.map(mapper);
    }
    dim_vector dims() const override
    {
        return dim_vector(1, 1);
    }
    bool is_defined() const override
    {
        return true;
    }
    bool is_constant() const override
    {
        return true;
    }
    bool is_scalar_type() const override
    {
        return true;
    }
    bool is_real_scalar() const override
    {
        return true;
    }
    bool is_double_type() const override
    {
        return true;
    }
    bool isreal() const override
    {
        return true;
    }
    bool isnumeric() const override
    {
        return true;
    }
    bool isfloat() const override
    {
        return true;
    }
    bool is_true() const override
    {
        return true;
    }
    double double_value(bool) const override
    {
        return taken_number();
    }
    double scalar_value(bool) const override
    {
        return taken_number();
    }
    Matrix matrix_value(bool) const override
    {
        return Matrix(1, 1, taken_number());
    }
    NDArray array_value(bool) const override
    {
        return NDArray(dim_vector(1, 1), taken_number());
    }
    bool print_as_scalar() const override
    {
        return true;
    }
    void print(std::ostream &out, bool as_read) override
    {
        print_raw(out, as_read);
        newline(out);
    }
    void print_raw(std::ostream &out, bool) const override
    {
        indent(out);
        out << number();
    }
    void short_disp(std::ostream &out) const override
    {
        out << number();
    }

  private:
    std::shared_ptr<Ticket> m_ticket;

    double taken_number() const
    {
        m_ticket->is_number_taken = true;
        return number();
    }
    octave_value taken() const
    {
        return octave_value(taken_number());
    }
    static octave_base_value *as_number(const octave_base_value &value)
    {
        return new octave_scalar(dynamic_cast<const Request &>(value).taken_number());
    }

    static int s_type;
};

int Request::s_type = -1;

octave_value new_request(Pending &&started)
{
    if (latest == 0)
        Request::register_type();
    pending[++latest] = std::move(started);
    return octave_value(new Request(latest));
}

// The request that an argument of this function is.
std::map<std::uint32_t, Pending>::iterator request_of(const octave_value &value, const char *function)
{
    const auto *request = dynamic_cast<const Request *>(value.internal_rep());
    const std::uint32_t number = request ? request->number() : int_argument(value, function, "a request");
    const auto found = pending.find(number);
    if (found == pending.end())
        fail("request", "%s: request %u is not under way: it was waited for or withdrawn before, or never started",
             function, number);
    return found;
}

// The oldest receive that wants a message with this source and tag; the end if there is none.
std::list<std::uint32_t>::iterator wanted_by(MPI_Comm comm, const MPI_Status &status)
{
    return std::find_if(waiting.begin(), waiting.end(),
                        [&](std::uint32_t number) { return pending[number].wants(comm, status); });
}

// The oldest kept message that a receive with these arguments wants.
std::map<std::uint32_t, Pending>::iterator kept_for(int source, int tag, MPI_Comm comm)
{
    Pending receive;
    receive.source = source;
    receive.tag = tag;
    receive.comm = comm;
    return std::find_if(kept.begin(), kept.end(),
                        [&](const auto &each) { return receive.wants(each.second.comm, each.second.status); });
}

octave_value take_kept(std::map<std::uint32_t, Pending>::iterator place, MPI_Status &status)
{
    const octave_value value = place->second.value;
    status = place->second.status;
    kept.erase(place);
    return value;
}

void give(std::list<std::uint32_t>::iterator place, const octave_value &value, const MPI_Status &status)
{
    Pending &receive = pending[*place];
    waiting.erase(place);
    receive.status = status;
    receive.value = value;
    receive.has_value = true;
}

void deliver(std::list<std::uint32_t>::iterator place, MPI_Message message, MPI_Status status)
{
    const MPI_Comm comm = pending[*place].comm;
    const octave_value value = receive(message, status, comm);
    give(place, value, status);
}

void withdraw(std::uint32_t number)
{
    const auto found = pending.find(number);
    if (found == pending.end())
        return;
    Pending request = std::move(found->second);
    pending.erase(found);
    waiting.remove(number);
    if (!request.has_value)
        return; // a value that is being sent stays under way
    const auto other = wanted_by(request.comm, request.status);
    if (other != waiting.end())
        give(other, request.value, request.status);
    else
        kept[number] = std::move(request);
}

// Takes the messages that have come for receives in their order. A message may come after an older receive has found
// none, and be found by a later one: it belongs to the older one.
void take_messages()
{
    for (auto place = waiting.begin(); place != waiting.end();) {
        const Pending &receive = pending[*place];
        MPI_Message message;
        MPI_Status status;
        int found = 0;
        check(MPI_Improbe(receive.source, receive.tag, receive.comm, &found, &message, &status));
        if (!found) {
            ++place;
            continue;
        }
        deliver(wanted_by(receive.comm, status), message, status);
        // While the rest of a long message was waited for, others may have been taken.
        place = waiting.begin();
    }
}

// Takes messages until `is_done`.
template <typename F> void go_on_until(F is_done)
{
    while (!is_done()) {
        take_messages();
        octave_quit();
        std::this_thread::yield();
    }
}

// The value that a request has received, and its status; the request is gone.
octave_value_list finished(std::map<std::uint32_t, Pending>::iterator place)
{
    octave_value_list result;
    if (place->second.is_receive()) {
        result(0) = place->second.value;
        result(1) = status_value(place->second.status);
    } else
        result(0) = octave_value(Matrix());
    pending.erase(place);
    return result;
}

void wait_in_order(MPI_Request &request)
{
    if (waiting.empty())
        wait(request);
    else
        go_on_until([&] {
            int done = 0;
            check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            return done != 0;
        });
}
} // namespace

void complete(MPI_Request &request)
{
    try {
        wait_in_order(request);
    } catch (...) {
        if (request != MPI_REQUEST_NULL && MPI_Cancel(&request) == MPI_SUCCESS)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        throw;
    }
}

void complete(Sending &sending)
{
    wait_in_order(sending.request());
}

void send_in_order(const octave_value &value, int dest, int tag, MPI_Comm comm)
{
    const auto message = std::make_shared<Message>(value);
    if (waiting.empty()) {
        send(message, dest, tag, comm);
        return;
    }
    Sending sending(message, dest, tag, comm);
    complete(sending);
}

octave_value receive_in_order(int source, int tag, MPI_Comm comm, MPI_Status &status)
{
    const auto older = kept_for(source, tag, comm);
    if (older != kept.end())
        return take_kept(older, status);
    MPI_Message message;
    if (waiting.empty())
        probe(source, tag, comm, message, status);
    else
        go_on_until([&] {
            take_messages();
            int found = 0;
            check(MPI_Improbe(source, tag, comm, &found, &message, &status));
            const auto owner = found ? wanted_by(comm, status) : waiting.end();
            if (owner == waiting.end())
                return found != 0;
            deliver(owner, message, status);
            return false;
        });
    return receive(message, status, comm);
}

bool look_in_order(int source, int tag, MPI_Comm comm, MPI_Status &status)
{
    take_messages();
    const auto older = kept_for(source, tag, comm);
    if (older != kept.end()) {
        status = older->second.status;
        return true;
    }
    int found = 0;
    check(MPI_Iprobe(source, tag, comm, &found, &status));
    return found != 0;
}

void peek_in_order(int source, int tag, MPI_Comm comm, MPI_Status &status)
{
    if (waiting.empty() && kept.empty())
        peek(source, tag, comm, status);
    else
        go_on_until([&] { return look_in_order(source, tag, comm, status); });
}

octave_value start_send(const octave_value &value, int dest, int tag, MPI_Comm comm)
{
    Pending started;
    started.sending.reset(new Sending(std::make_shared<Message>(value), dest, tag, comm));
    return new_request(std::move(started));
}

octave_value start_receive(int source, int tag, MPI_Comm comm)
{
    // Wrong arguments are an error now and not when the program waits.
    int found;
    check(MPI_Iprobe(source, tag, comm, &found, MPI_STATUS_IGNORE));
    Pending started;
    started.source = source;
    started.tag = tag;
    started.comm = comm;
    const auto older = kept_for(source, tag, comm);
    if (older != kept.end()) {
        started.value = take_kept(older, started.status);
        started.has_value = true;
        return new_request(std::move(started));
    }
    const octave_value request = new_request(std::move(started));
    waiting.push_back(latest);
    return request;
}

void check_request(const octave_value &request, const char *function)
{
    request_of(request, function);
}

octave_value_list wait_for(const octave_value &request, const char *function)
{
    const auto place = request_of(request, function);
    Pending &it = place->second;
    if (!it.is_receive())
        complete(*it.sending);
    else if (!it.has_value && waiting.size() == 1) {
        MPI_Message message;
        probe(it.source, it.tag, it.comm, message, it.status);
        waiting.pop_front();
        it.value = receive(message, it.status, it.comm);
    } else
        go_on_until([&] { return it.has_value; });
    return finished(place);
}

octave_value_list test(const octave_value &request, const char *function)
{
    const auto place = request_of(request, function);
    Pending &it = place->second;
    int done = 0;
    if (it.is_receive()) {
        take_messages();
        done = it.has_value;
    } else
        check(MPI_Test(&it.sending->request(), &done, MPI_STATUS_IGNORE));
    return done ? finished(place) : octave_value_list();
}

void withdraw(const octave_value &request, const char *function)
{
    withdraw(request_of(request, function)->first);
}

void forget_communicator(MPI_Comm comm)
{
    waiting.remove_if([&](std::uint32_t number) { return pending[number].comm == comm; });
    for (auto *table : {&pending, &kept})
        for (auto each = table->begin(); each != table->end();)
            each = each->second.comm == comm ? table->erase(each) : std::next(each);
}

octave_value status_value(const MPI_Status &status)
{
    octave_scalar_map map;
    map.assign("source", octave_value(double(status.MPI_SOURCE)));
    map.assign("tag", octave_value(double(status.MPI_TAG)));
    return octave_value(map);
}

void count_arguments(const octave_value_list &arguments, int least, int most, const char *form)
{
    start();
    if (arguments.length() < least || arguments.length() > most)
        fail("arg", "this is how to call it: %s", form);
}

int optional_int(const octave_value_list &arguments, int index, int missing, const char *function, const char *name)
{
    if (index >= arguments.length() || arguments(index).isempty())
        return missing;
    if (missing == -1 && arguments(index).is_string() && arguments(index).string_value() == "any")
        return missing;
    return int_argument(arguments(index), function, name);
}
} // namespace limosa
