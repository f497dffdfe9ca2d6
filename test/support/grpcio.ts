/** A server and a client of gRPC on its C core, in Python, without generated code. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { pythonWith } from './python-modules.js';
import type { Scope } from './scope.js';

const service = `
import sys, threading, time
from concurrent import futures
import grpc

lock = threading.Lock()
cancelled = 0

def metadata_of(context):
    return dict(context.invocation_metadata())

def echo_metadata(context):
    sent = metadata_of(context)
    context.send_initial_metadata((('x-initial', sent.get('x-text', '')), ('x-initial-bin', sent.get('x-data-bin', b''))))
    context.set_trailing_metadata((
        ('x-trailing', sent.get('x-text', '')),
        ('x-trailing-bin', sent.get('x-data-bin', b'')),
        ('x-seen-subject', sent.get('x-auth-subject', '')),
    ))

def unary(request, context):
    echo_metadata(context)
    return request

def collect(requests, context):
    echo_metadata(context)
    messages = list(requests)
    return ('%d:%d' % (len(messages), sum(map(len, messages)))).encode()

def split(request, context):
    echo_metadata(context)
    for number in range(int(request)):
        yield str(number).encode()

def both(requests, context):
    echo_metadata(context)
    for request in requests:
        yield request

def fail(request, context):
    context.set_trailing_metadata((('x-trailing', 'of a failure'), ('grpc-status-details-bin', request)))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, 'half \\u00e4 and 100%')

def noticed():
    global cancelled
    with lock:
        cancelled += 1

def wait(request, context):
    over = threading.Event()
    context.add_callback(over.set)
    over.wait()
    noticed()
    return b''

def ticks(request, context):
    over = threading.Event()
    context.add_callback(over.set)
    while not over.wait(0.05):
        yield b'tick'
    noticed()

def leave(request, context):
    yield b'first'
    context.cancel()

def count(request, context):
    with lock:
        return str(cancelled).encode()

def remaining(request, context):
    left = context.time_remaining()
    return b'none' if left is None or left > 1e8 else str(round(left * 1000)).encode()

handlers = {
    'Unary': grpc.unary_unary_rpc_method_handler(unary),
    'Collect': grpc.stream_unary_rpc_method_handler(collect),
    'Split': grpc.unary_stream_rpc_method_handler(split),
    'Both': grpc.stream_stream_rpc_method_handler(both),
    'Fail': grpc.unary_unary_rpc_method_handler(fail),
    'Wait': grpc.unary_unary_rpc_method_handler(wait),
    'Ticks': grpc.unary_stream_rpc_method_handler(ticks),
    'Leave': grpc.unary_stream_rpc_method_handler(leave),
    'Cancelled': grpc.unary_unary_rpc_method_handler(count),
    'Remaining': grpc.unary_unary_rpc_method_handler(remaining),
}
compression = grpc.Compression.Gzip if 'gzip' in sys.argv else grpc.Compression.NoCompression
server = grpc.server(futures.ThreadPoolExecutor(max_workers=32), compression=compression)
for name in 'shop.v1.Orders', 'shop.v1.Small':
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
port = server.add_insecure_port('127.0.0.1:0')
server.start()
print(port, flush=True)
server.wait_for_termination()
`;

const client = `
import json, sys, threading, time
import grpc

asked = json.loads(sys.argv[1])
results = {}
path = '/shop.v1.Orders/'
binary = bytes(range(256))
metadata = (('authorization', asked.get('authorization', '')), ('x-text', 'a text'), ('x-data-bin', binary))

def told(call):
    initial, trailing = dict(call.initial_metadata()), dict(call.trailing_metadata())
    return {
        'initial': initial.get('x-initial'),
        'initialIsWhole': initial.get('x-initial-bin') == binary,
        'trailing': trailing.get('x-trailing'),
        'trailingIsWhole': trailing.get('x-trailing-bin') == binary,
        'subject': trailing.get('x-seen-subject'),
    }

def failed(error):
    details = dict(error.trailing_metadata() or ()).get('grpc-status-details-bin')
    return {
        'code': error.code().name,
        'details': error.details(),
        'bytes': details.hex() if details is not None else None,
        'trailing': dict(error.trailing_metadata() or ()).get('x-trailing'),
    }

def attempt(call):
    try:
        return {'answer': call().hex()}
    except grpc.RpcError as error:
        return failed(error)

def step(name, run):
    if name in asked['steps']:
        results[name] = run()

channel = grpc.insecure_channel(asked['address'])

def unary():
    answer, call = channel.unary_unary(path + 'Unary').with_call(b'order', metadata=metadata, timeout=20)
    return dict(told(call), answer=answer.decode())

def large():
    message = bytes(range(256)) * 3516
    return channel.unary_unary(path + 'Unary')(message, metadata=metadata, timeout=20) == message

def collect():
    answer, call = channel.stream_unary(path + 'Collect').with_call(
        (b'x' * 10 for _ in range(20000)), metadata=metadata, timeout=60)
    return dict(told(call), answer=answer.decode())

def split():
    call = channel.unary_stream(path + 'Split')(b'20000', metadata=metadata, timeout=60)
    return dict(answer=[int(message) for message in call] == list(range(20000)), **told(call))

def both():
    call = channel.stream_stream(path + 'Both')(iter([b'1', b'2', b'3']), metadata=metadata, timeout=20)
    return dict(answer=[message.decode() for message in call], **told(call))

def fail():
    return attempt(lambda: channel.unary_unary(path + 'Fail')(binary, metadata=metadata, timeout=20))

def deadline():
    return attempt(lambda: channel.unary_unary(path + 'Wait')(b'', metadata=metadata, timeout=0.3))

def remaining():
    return channel.unary_unary(path + 'Remaining')(b'', metadata=metadata, timeout=30).decode()

def cancel():
    call = channel.unary_stream(path + 'Ticks')(b'', metadata=metadata, timeout=20)
    first = next(call).decode()
    call.cancel()
    return first

def left():
    call = channel.unary_stream(path + 'Leave')(b'', metadata=metadata, timeout=20)
    messages = []
    try:
        for message in call:
            messages.append(message.decode())
    except grpc.RpcError as error:
        return dict(failed(error), messages=messages)
    return {'code': 'OK', 'messages': messages}

def stranger():
    return attempt(lambda: channel.unary_unary(path + 'Unary')(b'', timeout=20))

def gzip():
    zipped = grpc.insecure_channel(asked['address'], compression=grpc.Compression.Gzip)
    size = lambda via: attempt(lambda: via.unary_unary('/shop.v1.Small/Unary')(bytes(900000), metadata=metadata, timeout=20))
    return {'zipped': size(zipped).get('answer') == bytes(900000).hex(), 'plain': size(channel).get('code')}

def health(request, method='Check'):
    answered = attempt(lambda: channel.unary_unary('/grpc.health.v1.Health/' + method)(request, timeout=20))
    return answered.get('answer') or answered['code']

step('unary', unary)
step('large', large)
step('collect', collect)
step('split', split)
step('both', both)
step('fail', fail)
step('deadline', deadline)
step('remaining', remaining)
step('cancel', cancel)
step('left', left)
step('stranger', stranger)
step('gzip', gzip)
step('health', lambda: [health(b''), health(bytes([10, 6]) + b'orders'), health(b'', 'Watch')])
print(json.dumps(results), flush=True)
`;

const oneCall = `
import json, sys
import grpc

asked = json.loads(sys.argv[1])
compression = grpc.Compression.Gzip if asked['gzip'] else grpc.Compression.NoCompression
channel = grpc.insecure_channel(asked['address'], compression=compression)
try:
    answer = channel.unary_unary(asked['path'])(bytes.fromhex(asked['message']), timeout=20)
    print(json.dumps({'answer': answer.hex(), 'code': 'OK'}), flush=True)
except grpc.RpcError as error:
    print(json.dumps({'answer': None, 'code': error.code().name}), flush=True)
`;

const python = (): string => pythonWith('grpc');

/** Serves `shop.v1.Orders`, and the same as `shop.v1.Small`, on a free port of loopback until the test ends. */
export async function startPythonGrpcServer(t: Scope, answers: 'plain' | 'gzip' = 'plain'): Promise<number> {
  const child = spawn(python(), ['-c', service, answers], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const tooSoon = ended.then(() => {
    throw new Error('the server of gRPC ended before it listened');
  });
  const [line = ''] = (await Promise.race([once(createInterface(child.stdout), 'line'), tooSoon])) as string[];
  return Number(line);
}

/** Makes one call with this message, and returns the message that answers it, in hexadecimal, and the code's name. */
export async function callOnceFromPython(call: {
  readonly address: string;
  readonly path: string;
  readonly message: Buffer;
  readonly gzip?: boolean;
}): Promise<{ readonly answer: string | null; readonly code: string }> {
  const asked = { gzip: false, ...call, message: call.message.toString('hex') };
  return (await runPython(oneCall, asked)) as { readonly answer: string | null; readonly code: string };
}

export interface PythonCalls {
  /** Host and port. */
  readonly address: string;
  readonly authorization: string;
  /** Which calls are made, by the names of its functions. */
  readonly steps: readonly string[];
}

/** Makes calls of a client of gRPC on its C core, and returns what it was told, by the names of the steps. */
export async function callFromPython(calls: PythonCalls): Promise<Readonly<Record<string, unknown>>> {
  return (await runPython(client, calls)) as Readonly<Record<string, unknown>>;
}

/** Runs a script that is told what to do in JSON, and tells so what came of it. */
async function runPython(script: string, asked: object): Promise<unknown> {
  const child = spawn(python(), ['-c', script, JSON.stringify(asked)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  await once(child, 'close');
  return JSON.parse(text) as unknown;
}
