import { RE2JS } from 're2js';
import { UsageError } from '../../errors.ts';
import { maskOf, textsOf, type Values } from '../values.ts';
import { type Argument, exactly, type Functions, type Rows, textResult } from './function.ts';

/** Parts of texts that a constant describes: a regular expression, or a path of JSON. */
export const matches: Functions = {
  regexpExtract: {
    takes: "(text, 'pattern', group)",
    sign: (args) => {
      const [regex, group] = [patternOf(args[1]), Number(constantOf(args[2]) ?? 0)];
      if (args[2] !== undefined && constantOf(args[2]) === undefined) return undefined;
      if (regex !== undefined) requireGroup(regex, group);
      return regex && exactly(['utf8', 'utf8', 'int64?'], 'utf8')(args);
    },
    kernel: ([text, pattern, group], rows) => {
      const [regex, number] = [
        compiled(textsOf(pattern)[0]),
        Number(group?.form === 'number' ? group.values[0] : 0),
      ];
      return mapped(text, rows, (value) => {
        const matcher = regex.matcher(value);
        return matcher.find() ? (matcher.group(number) ?? '') : '';
      });
    },
  },
  regexpReplace: {
    takes: "(text, 'pattern', 'replacement')",
    sign: (args) => {
      const [regex, replacement] = [patternOf(args[1]), constantOf(args[2])];
      if (regex === undefined || replacement === undefined) return undefined;
      for (const [, group] of String(replacement).matchAll(/\\.|\$(\d)/g))
        if (group !== undefined) requireGroup(regex, Number(group));
      return exactly(['utf8', 'utf8', 'utf8'], 'utf8')(args);
    },
    kernel: ([text, pattern, by], rows) => {
      const [regex, parts] = [compiled(textsOf(pattern)[0]), replacementOf(textsOf(by)[0])];
      return mapped(text, rows, (value) => replaced(value, regex, parts));
    },
  },
  splitPart: {
    takes: '(text, separator, number)',
    sign: exactly(['utf8', 'utf8', 'int64'], 'utf8'),
    kernel: splitPart,
  },
  jsonText: {
    takes: "(text, 'path', 'error' or 'null')",
    sign: (args) => {
      const [path, onError] = [constantOf(args[1]), constantOf(args[2]) ?? 'error'];
      if (typeof path !== 'string' || (onError !== 'error' && onError !== 'null')) return undefined;
      pathOf(path);
      return exactly(['utf8', 'utf8', 'utf8?'], 'utf8')(args);
    },
    kernel: jsonText,
    mayFail: true,
  },
};

function constantOf(argument: Argument | undefined): string | number | undefined {
  const constant = argument?.constant;
  if (constant?.form === 'text' || constant?.form === 'number') return constant.values[0];
  return undefined;
}

function patternOf(argument: Argument | undefined): RE2JS | undefined {
  const pattern = constantOf(argument);
  return typeof pattern === 'string' ? compiled(pattern) : undefined;
}

/** RE2 matches in linear time, where JavaScript's own expressions may take exponential time: (a+)+$. */
export function compiled(pattern: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch (error) {
    const reason =
      error instanceof Error ? error.message.replace('error parsing regexp: ', '') : String(error);
    throw new UsageError(`'${pattern}' is not a regular expression of RE2: ${reason}`, {
      cause: error,
      advice: 'RE2 has no look-around (?=a) and no back references \\1',
    });
  }
}

function requireGroup(regex: RE2JS, group: number): void {
  const groups = regex.groupCount();
  if (Number.isInteger(group) && group >= 0 && group <= groups) return;
  throw new UsageError(`'${regex.pattern()}' has no group ${group}: it has ${groups} in parentheses`, {
    advice: 'Group 0 is the whole match',
  });
}

function mapped(text: Values, rows: Rows, map: (value: string) => string): Values {
  return textResult(rows, textsOf(text).map(map));
}

/** Texts, and the numbers of groups: `$0` to `$9`. `\$` is a dollar. */
function replacementOf(text: string): (string | number)[] {
  return Array.from(text.matchAll(/\\(.)|\$(\d)|[^]/g), ([whole, quoted, group]) =>
    group === undefined ? (quoted ?? whole) : Number(group),
  );
}

function replaced(value: string, regex: RE2JS, parts: readonly (string | number)[]): string {
  const matcher = regex.matcher(value);
  let [out, at] = ['', 0];
  while (matcher.find()) {
    out += value.slice(at, matcher.start());
    for (const part of parts) out += typeof part === 'string' ? part : (matcher.group(part) ?? '');
    at = matcher.end();
  }
  return out + value.slice(at);
}

/** Parts count from 1, or from the end if negative; a part that is not there is the empty text. */
function splitPart(args: readonly Values[], rows: Rows): Values {
  const [text, separator, number] = args;
  const [values, separators, masks] = [textsOf(text), textsOf(separator), args.map(maskOf)];
  const numbers = number.form === 'number' ? number.values : new Float64Array(rows.length);
  const row = (_: unknown, i: number) => {
    const [by, n] = [separators[i & masks[1]], numbers[i & masks[2]]];
    const parts = by === '' ? [values[i & masks[0]]] : values[i & masks[0]].split(by);
    return parts.at(n > 0 ? n - 1 : n) ?? '';
  };
  return textResult(rows, Array.from({ length: rows.length }, row));
}

/** The keys and positions of `$.a[0]."b c"`; the `$.` may be left out. */
function pathOf(path: string): (string | number)[] {
  const steps: (string | number)[] = [];
  const step = /\.?(?:"([^"]*)"|([^.[\]"]+))|\[(\d+)\]/y;
  for (step.lastIndex = path.startsWith('$') ? 1 : 0; step.lastIndex < path.length;) {
    const at = step.lastIndex;
    const found = step.exec(path);
    if (found === null)
      throw new UsageError(`'${path}' is not a path of JSON: nothing fits at character ${at + 1}`, {
        advice: `Write it as '$.tags[0].name'`,
      });
    steps.push(found[3] === undefined ? (found[1] ?? found[2]) : Number(found[3]));
  }
  return steps;
}

/** Numbers keep their digits: the types of TypeScript do not have these functions yet. */
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => { readonly rawJSON: string } };
const asWritten = (_: string, value: unknown, context?: { source?: string }): unknown =>
  typeof value === 'number' ? rawJSON(context?.source ?? String(value)) : value;

function jsonText([text, path, onError]: readonly Values[], rows: Rows): Values {
  const [values, steps] = [textsOf(text), pathOf(textsOf(path)[0])];
  const isNull = onError !== undefined && textsOf(onError)[0] === 'null';
  const valid = rows.valid ?? new Uint8Array(rows.length).fill(1);
  const out = values.map((value, i) => {
    if (valid[i] === 0) return '';
    let found: unknown;
    try {
      found = JSON.parse(value, asWritten);
    } catch {
      if (!isNull) rows.fail(i, `'${value.slice(0, 100)}' is not JSON`);
    }
    for (const step of steps) found = partOf(found, step);
    if (found === undefined || found === null) valid[i] = 0;
    return typeof found === 'string' ? found : (JSON.stringify(found) ?? '');
  });
  return textResult({ ...rows, valid: valid.includes(0) ? valid : undefined }, out);
}

function partOf(value: unknown, step: string | number): unknown {
  if (typeof value !== 'object' || value === null || 'rawJSON' in value) return undefined;
  if (Array.isArray(value) !== (typeof step === 'number')) return undefined;
  return Object.hasOwn(value, step) ? (value as Record<string | number, unknown>)[step] : undefined;
}
