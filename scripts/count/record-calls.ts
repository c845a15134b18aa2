/**
 * Loaded before the command by count-calls.ts: every function of the project reports when it is entered and by whom.
 * Writes what the main thread entered to the file in FACTORFLOW_CALLS when the process ends.
 */
import { writeFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { parse } from '@babel/parser';

export interface RecordedFunction {
  readonly file: string;
  readonly line: number;
  readonly name: string;
  /** Async functions and generators. */
  readonly waits: boolean;
}

type Call = readonly [caller: RecordedFunction, callee: RecordedFunction];

export interface Recorded {
  readonly functions: readonly RecordedFunction[];
  /** Calls into a folder that is not the caller's own, but has a function further up in the stack. */
  readonly climbs: readonly Call[];
}

interface FoundFunction extends RecordedFunction {
  /** Offsets in the text that runs. */
  readonly start: number;
  readonly end: number;
}

const root = resolve(import.meta.dirname, '../..');

/** Stacks that are read of one function; later calls are only counted. */
const stacksRead = 30;

const found: FoundFunction[] = [];
const functionsOfFile = new Map<string, FoundFunction[]>();
const linesOfFile = new Map<string, readonly number[]>();
const entries = new Map<number, number>();
const climbs = new Map<string, Call>();

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly id?: { readonly name?: string } | null;
  readonly key?: { readonly name?: string };
  readonly async?: boolean;
  readonly generator?: boolean;
  readonly body: SyntaxNode;
}

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && typeof (value as SyntaxNode).type === 'string';

/** Calls `visit` for each function in `node`, with its name or the name that it is assigned to. */
const eachFunction = (
  node: SyntaxNode,
  name: string,
  visit: (node: SyntaxNode, name: string) => void,
): void => {
  if (/Function/.test(node.type)) visit(node, node.id?.name ?? name);
  const given = node.key?.name ?? node.id?.name ?? '';
  for (const [key, value] of Object.entries(node)) {
    for (const child of [value].flat()) {
      if (isNode(child)) eachFunction(child, /value|init/.test(key) ? given : '', visit);
    }
  }
};

const functionsIn = (source: string) => {
  const functions: { node: SyntaxNode; name: string }[] = [];
  eachFunction(
    parse(source, { sourceType: 'module', plugins: ['estree'] }) as unknown as SyntaxNode,
    '',
    (node, name) => functions.push({ node, name }),
  );
  return functions;
};

/** The text of a module in which each function reports that it is entered. */
const withReports = (source: string, file: string): string => {
  const inserted = functionsIn(source).flatMap(({ node: { body } }, index): [number, string][] => {
    const report = `globalThis.enterFunction(${found.length + index})`;
    return body.type === 'BlockStatement'
      ? [[body.start + 1, `${report};`]]
      : [
          [body.start, `(${report},`],
          [body.end, ')'],
        ];
  });
  let text = source;
  for (const [at, added] of inserted.toSorted(([a], [b]) => b - a)) {
    text = text.slice(0, at) + added + text.slice(at);
  }
  const lines = [0, ...Array.from(text.matchAll(/\n/g), ({ index }) => index + 1)];
  const functions = functionsIn(text).map(({ node: { start, end, async, generator }, name }) => {
    const line = lines.findLastIndex((offset) => offset <= start) + 1;
    return { file, line, name, waits: Boolean(async || generator), start, end };
  });
  found.push(...functions);
  functionsOfFile.set(file, functions);
  linesOfFile.set(file, lines);
  return text;
};

/** The functions of the project in the stack of the running one, the innermost first. */
const callersNow = (): FoundFunction[] => {
  const { stack = '' } = new Error();
  return Array.from(stack.matchAll(/file:\/\/([^\s)]+?):(\d+):(\d+)/g), ([, path, line, column]) => {
    const file = relative(root, path!);
    const offset = (linesOfFile.get(file)?.[Number(line) - 1] ?? 0) + Number(column) - 1;
    return functionsOfFile.get(file)?.findLast(({ start, end }) => start <= offset && offset < end);
  }).filter((caller) => caller !== undefined);
};

const enterFunction = (id: number): void => {
  const count = (entries.get(id) ?? 0) + 1;
  entries.set(id, count);
  if (count > stacksRead) return;
  const [callee, caller, ...above] = callersNow();
  if (callee === undefined || caller === undefined) return;
  const [from, to] = [dirname(caller.file), dirname(callee.file)];
  if (from !== to && above.some(({ file }) => dirname(file) === to)) {
    climbs.set(`${caller.file} ${caller.start} ${callee.file} ${callee.start}`, [caller, callee]);
  }
};

Object.assign(globalThis, { enterFunction: isMainThread ? enterFunction : () => {} });

if (isMainThread) {
  Error.stackTraceLimit = 200;
  registerHooks({
    load(url, context, nextLoad) {
      const file = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : '';
      const loaded = nextLoad(url, context);
      if (!file.endsWith('.ts') || /^(\.\.|node_modules)/.test(file)) return loaded;
      const source = stripTypeScriptTypes(`${loaded.source}`, { mode: 'strip' });
      return { format: 'module', source: withReports(source, file), shortCircuit: true };
    },
  });
  process.on('exit', () => {
    const recorded: Recorded = {
      functions: [...entries.keys()].map((id) => found[id]!),
      climbs: [...climbs.values()],
    };
    writeFileSync(process.env.FACTORFLOW_CALLS!, JSON.stringify(recorded));
  });
}
