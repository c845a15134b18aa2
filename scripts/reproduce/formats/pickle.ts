import { DataError } from '../../../index.ts';

/** A value of a pickle. A Python object is what it was made of; nothing of it is run. */
export type PickledValue =
  | number
  | string
  | boolean
  | null
  | Buffer
  | PickledValue[]
  | Map<PickledValue, PickledValue>
  | PickledObject;

export interface PickledObject {
  readonly made: string;
  readonly args: PickledValue[];
  state?: PickledValue;
}

/** The start of a list, tuple or dictionary on the stack. */
const MARK = Symbol('mark');
type Slot = PickledValue | typeof MARK;

/**
 * Reads the part of pickle's protocol 2 that numbers, texts, lists, tuples, dictionaries and NumPy's scalars
 * and object arrays need. Any other opcode is an error with its place.
 */
export function readPickle(bytes: Buffer, file: string): PickledValue {
  return new PickleReader(bytes, file).read();
}

class PickleReader {
  readonly #bytes: Buffer;
  readonly #file: string;
  readonly #stack: Slot[] = [];
  readonly #memo = new Map<number, PickledValue>();
  #place = 0;

  constructor(bytes: Buffer, file: string) {
    [this.#bytes, this.#file] = [bytes, file];
  }

  read(): PickledValue {
    for (;;) {
      const opcode = String.fromCharCode(this.#number(1));
      if (opcode === '.') return this.#pop();
      const act = actions[opcode] ?? this.#fail(`pickle has the opcode ${JSON.stringify(opcode)}`);
      act(this.#tools);
    }
  }

  readonly #tools = {
    push: (value: Slot) => void this.#stack.push(value),
    pop: () => this.#pop(),
    top: () => this.#stack.at(-1),
    /** Values since the last mark, which they leave with it. */
    marked: () => {
      const values = this.#stack.splice(this.#stack.lastIndexOf(MARK));
      return values.slice(1) as PickledValue[];
    },
    number: (bytes: number) => this.#number(bytes),
    signed: () => this.#number(4) | 0,
    text: (length: number) => this.#take(length).toString('utf8'),
    line: () => {
      const end = this.#bytes.indexOf(0x0a, this.#place);
      const text = this.#bytes.toString('utf8', this.#place, end);
      this.#place = end + 1;
      return text;
    },
    store: (key: number) => void this.#memo.set(key, this.#stack.at(-1) as PickledValue),
    stored: (key: number) => this.#memo.get(key) as PickledValue,
  };

  #pop(): PickledValue {
    const value = this.#stack.pop();
    if (value === undefined || value === MARK) return this.#fail('pickle takes a value that is not there');
    return value;
  }

  #take(length: number): Buffer {
    if (this.#place + length > this.#bytes.length) this.#fail('pickle ends too early');
    this.#place += length;
    return this.#bytes.subarray(this.#place - length, this.#place);
  }

  #number(bytes: number): number {
    return this.#take(bytes).readUIntLE(0, bytes);
  }

  #fail(text: string): never {
    throw new DataError(`${text} at byte ${this.#place}`, { phase: 'read', file: this.#file });
  }
}

type Tools = Readonly<{
  push(value: Slot): void;
  pop(): PickledValue;
  top(): Slot | undefined;
  marked(): PickledValue[];
  number(bytes: number): number;
  signed(): number;
  text(length: number): string;
  line(): string;
  store(key: number): void;
  stored(key: number): PickledValue;
}>;

/** By opcode, in the order of Python's pickletools: values, containers, memo, objects. */
const actions: Readonly<Record<string, (tools: Tools) => void>> = {
  '\x80': (pickle) => void pickle.number(1),
  J: (pickle) => pickle.push(pickle.signed()),
  K: (pickle) => pickle.push(pickle.number(1)),
  M: (pickle) => pickle.push(pickle.number(2)),
  X: (pickle) => pickle.push(pickle.text(pickle.number(4))),
  N: (pickle) => pickle.push(null),
  '\x88': (pickle) => pickle.push(true),
  '\x89': (pickle) => pickle.push(false),
  '(': (pickle) => pickle.push(MARK),
  ')': (pickle) => pickle.push([]),
  ']': (pickle) => pickle.push([]),
  '}': (pickle) => pickle.push(new Map()),
  t: (pickle) => pickle.push(pickle.marked()),
  '\x85': (pickle) => pickle.push([pickle.pop()]),
  '\x86': (pickle) => pickle.push([pickle.pop(), pickle.pop()].toReversed()),
  '\x87': (pickle) => pickle.push([pickle.pop(), pickle.pop(), pickle.pop()].toReversed()),
  a: (pickle) => append(pickle, [pickle.pop()]),
  e: (pickle) => append(pickle, pickle.marked()),
  s: (pickle) => setItems(pickle, [pickle.pop(), pickle.pop()].toReversed()),
  u: (pickle) => setItems(pickle, pickle.marked()),
  q: (pickle) => pickle.store(pickle.number(1)),
  r: (pickle) => pickle.store(pickle.number(4)),
  h: (pickle) => pickle.push(pickle.stored(pickle.number(1))),
  j: (pickle) => pickle.push(pickle.stored(pickle.number(4))),
  c: (pickle) => pickle.push({ made: `${pickle.line()}.${pickle.line()}`, args: [] }),
  R: (pickle) => {
    const args = pickle.pop() as PickledValue[];
    pickle.push(made((pickle.pop() as PickledObject).made, args));
  },
  b: (pickle) => {
    const state = pickle.pop();
    (pickle.top() as PickledObject).state = state;
  },
};

function append({ top }: Tools, values: readonly PickledValue[]): void {
  const list = top() as PickledValue[];
  for (const value of values) list.push(value);
}

function setItems({ top }: Tools, values: readonly PickledValue[]): void {
  const map = top() as Map<PickledValue, PickledValue>;
  for (let k = 0; k < values.length; k += 2) map.set(values[k], values[k + 1]);
}

/**
 * Bytes that Python 3 wrote as text, and NumPy's int64 scalars; other objects stay what they were made of.
 */
function made(name: string, args: PickledValue[]): PickledValue {
  if (name === '_codecs.encode') return Buffer.from(args[0] as string, 'latin1');
  const isInt64 = name === 'numpy.core.multiarray.scalar' && (args[0] as PickledObject).args[0] === 'i8';
  return isInt64 ? Number((args[1] as Buffer).readBigInt64LE()) : { made: name, args };
}
