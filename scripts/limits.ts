/**
 * Limits that a reader would set: functions of 60 lines, files of 300, a complexity of 15, four nested
 * blocks. Code that exceeded them when they were set is listed in scripts/limits-exceptions.json, which may
 * only shrink.
 *
 *     node scripts/limits.ts             fails where code exceeds a limit or its exception, or an exception is larger
 *                                        than its code
 *     node scripts/limits.ts --shrink    writes the list anew; refuses where a rule's exceptions grow in all
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Sizes beyond a rule's limit, largest first, by file. */
type Exceptions = Record<string, Record<string, number[]>>;

interface Diagnostic {
  readonly message: string;
  readonly code?: string;
  readonly filename: string;
}

const listed = fileURLToPath(new URL('limits-exceptions.json', import.meta.url));
const root = fileURLToPath(new URL('..', import.meta.url));

/** Code beyond the limits of .oxlint-limits.json, as oxlint finds it. */
function found(): Exceptions {
  const oxlint = fileURLToPath(new URL('../node_modules/oxlint/bin/oxlint', import.meta.url));
  const config = fileURLToPath(new URL('../.oxlint-limits.json', import.meta.url));
  const run = spawnSync(process.execPath, [oxlint, '-c', config, '-f', 'json'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 27,
  });
  if (run.stdout === '') throw new Error(`oxlint failed: ${run.stderr}`);
  const { diagnostics } = JSON.parse(run.stdout) as { diagnostics: Diagnostic[] };
  const exceptions: Exceptions = {};
  for (const { message, code, filename } of diagnostics) {
    const rule = /\((.+)\)/.exec(code ?? '')?.[1];
    const size = Number(/\((\d+)\)|complexity of (\d+)/.exec(message)?.slice(1).find(Boolean));
    if (rule === undefined || !(size > 0)) throw new Error(`${filename}: ${message}`);
    const sizes = ((exceptions[filename.replaceAll('\\', '/')] ??= {})[rule] ??= []);
    sizes.push(size);
    sizes.sort((a, b) => b - a);
  }
  return sorted(exceptions);
}

function sorted(exceptions: Exceptions): Exceptions {
  return Object.fromEntries(
    Object.entries(exceptions)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([file, rules]) => [file, Object.fromEntries(Object.entries(rules).sort())]),
  );
}

/** By rule: how many exceptions there are, and the sum of their sizes. */
function totals(exceptions: Exceptions): Map<string, { count: number; size: number }> {
  const sums = new Map<string, { count: number; size: number }>();
  for (const rules of Object.values(exceptions)) {
    for (const [rule, sizes] of Object.entries(rules)) {
      const { count, size } = sums.get(rule) ?? { count: 0, size: 0 };
      sums.set(rule, { count: count + sizes.length, size: size + sizes.reduce((a, b) => a + b, 0) });
    }
  }
  return sums;
}

/** The differences between `now` and the list, a line each. */
function differences(now: Exceptions, allowed: Exceptions): string[] {
  const lines: string[] = [];
  for (const file of new Set([...Object.keys(now), ...Object.keys(allowed)])) {
    for (const rule of new Set([...Object.keys(now[file] ?? {}), ...Object.keys(allowed[file] ?? {})])) {
      const sizes = now[file]?.[rule] ?? [];
      const most = allowed[file]?.[rule] ?? [];
      if (sizes.join() === most.join()) continue;
      const grown = sizes.some((size, i) => size > (most[i] ?? 0));
      lines.push(
        `${file}: ${rule} ${sizes.join(', ') || 'none'}, the exceptions are ${most.join(', ') || 'none'}` +
          (grown ? '' : ': run `node scripts/limits.ts --shrink`'),
      );
    }
  }
  return lines;
}

function shrink(now: Exceptions, allowed: Exceptions): void {
  const before = totals(allowed);
  for (const [rule, { count, size }] of totals(now)) {
    const most = before.get(rule) ?? { count: 0, size: 0 };
    if (count > most.count || size > most.size) {
      throw new Error(
        `${rule}: ${count} exceptions of ${size} in all, and ${most.count} of ${most.size} were listed`,
      );
    }
  }
  const entries = Object.entries(now).map(
    ([file, rules]) => `${JSON.stringify(file)}: ${JSON.stringify(rules)}`,
  );
  writeFileSync(listed, `{\n${entries.join(',\n')}\n}\n`);
}

const now = found();
const allowed = JSON.parse(readFileSync(listed, 'utf8')) as Exceptions;
if (process.argv.includes('--shrink')) {
  shrink(now, allowed);
} else {
  const lines = differences(now, allowed);
  for (const line of lines) console.error(line);
  const counts = [...totals(now)].map(([rule, { count }]) => `${rule} ${count}`).join(', ');
  console.log(`limits: exceptions that are left: ${counts}`);
  if (lines.length > 0) process.exitCode = 1;
}
