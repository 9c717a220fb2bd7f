"""tf.nn: recurrent networks; loops over the rows of tensors. The cells here are functions with a state of one tensor."""

_CELL = '''
class Cell:
    """The smallest cell: its state is the sum of what came."""
    state_size, output_size = 3, 3
    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, 3], dtype)
    def __call__(self, inputs, state, scope=None):
        return tf.tanh(inputs), state + inputs
'''
_SAVER = """
class Saver:
    def __init__(self):
        self.kept = f(2, 3)
    def state(self, name):
        return self.kept
    def save_state(self, name, value):
        return tf.identity(value, name="saved")
"""
_LOOP = """
rows = f(5, 2, 3)
def loop(time, cell_output, cell_state, loop_state):
    state = tf.zeros([2, 3]) if cell_output is None else cell_state
    return tf.fill([2], time >= 5), rows[0], state, cell_output, None
"""


def _with_cell(code: str) -> str:
    return f"{_CELL}{code}"


CALLS: dict[str, list[str]] = {
    "nn.dynamic_rnn": [
        _with_cell("tf.nn.dynamic_rnn(Cell(), f(2, 5, 3), dtype=tf.float32)"),
        _with_cell("tf.nn.dynamic_rnn(Cell(), f(5, None, 3), i(None), time_major=True, dtype=tf.float32, scope='n')"),
        _with_cell("tf.nn.dynamic_rnn(Cell(), f(2, 5, 3), initial_state=f(2, 3), swap_memory=True)"),
    ],
    "nn.bidirectional_dynamic_rnn": [
        _with_cell("tf.nn.bidirectional_dynamic_rnn(Cell(), Cell(), f(2, 5, 3), dtype=tf.float32)"),
        _with_cell("tf.nn.bidirectional_dynamic_rnn(Cell(), Cell(), f(2, 5, 3), l(2), dtype=tf.float32, scope='n')"),
    ],
    "nn.static_rnn": [
        _with_cell("tf.nn.static_rnn(Cell(), [f(2, 3), f(2, 3)], dtype=tf.float32)"),
        _with_cell("tf.nn.static_rnn(Cell(), [f(2, 3), f(2, 3)], f(2, 3), sequence_length=i(2), scope='n')"),
    ],
    "nn.static_bidirectional_rnn": [
        _with_cell("tf.nn.static_bidirectional_rnn(Cell(), Cell(), [f(2, 3), f(2, 3)], dtype=tf.float32)"),
        _with_cell(
            "tf.nn.static_bidirectional_rnn(Cell(), Cell(), [f(2, 3)] * 2, f(2, 3), f(2, 3), sequence_length=l(2), scope='n')"
        ),
    ],
    "nn.static_state_saving_rnn": [
        _with_cell(f"{_SAVER}tf.nn.static_state_saving_rnn(Cell(), [f(2, 3), f(2, 3)], Saver(), 's')"),
        _with_cell(f"{_SAVER}tf.nn.static_state_saving_rnn(Cell(), [f(2, 3)] * 2, Saver(), 's', i(2), scope='n')"),
    ],
    "nn.raw_rnn": [
        _with_cell(f"{_LOOP}tf.nn.raw_rnn(Cell(), loop)"), _with_cell(f"{_LOOP}tf.nn.raw_rnn(Cell(), loop, 4, scope='n')"),
    ],
    "map_fn": [
        "tf.map_fn(lambda x: x * 2.0, f(4, 3))",
        "tf.map_fn(lambda x: tf.cast(x[0], tf.int32) + x[1], (f(4), i(4)), dtype=tf.int32, name='n')",
        "tf.map_fn(lambda x: (x, -x), f(None, 3), (tf.float32, tf.float32), parallel_iterations=1)",
    ],
    "scan": [
        "tf.scan(lambda a, x: a + x, f(4, 3))",
        "tf.scan(lambda a, x: a * x, f(4), tf.constant(1.0), reverse=True, name='n')",
    ],
    "foldl": ["tf.foldl(lambda a, x: a + x, f(4, 3))", "tf.foldl(lambda a, x: a * x, f(4), tf.constant(1.0), name='n')"],
    "foldr": ["tf.foldr(lambda a, x: a + x, f(4, 3))", "tf.foldr(lambda a, x: a * x, f(4), tf.constant(1.0), name='n')"],
}  # fmt: skip
