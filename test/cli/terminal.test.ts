/**
 * Progress on a terminal: bars are on stderr alone and are erased at the end. `script` of util-linux gives
 * the terminal.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { program, quick, ratings, temporaryFolder, trainedModel } from './run-cli.ts';

const folder = temporaryFolder();
const escape = '\u001b';
const noTerminal =
  spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') === true
    ? undefined
    : 'there is no script of util-linux';
if (noTerminal !== undefined) console.warn(`TESTS ON A TERMINAL ARE SKIPPED: ${noTerminal}`);

let terminals = 0;

/**
 * Runs a shell command whose stdin, stdout and stderr are a terminal, and returns everything that was
 * written to it.
 */
async function onTerminal(line: string): Promise<string> {
  const file = join(folder, `terminal-${terminals++}`);
  const env = {
    ...process.env,
    TERM: 'xterm',
    NODE: process.execPath,
    PROGRAM: program,
    RATINGS: ratings,
    FOLDER: folder,
  };
  await promisify(execFile)('script', ['-qec', line, file], { env });
  // The first and the last line come from script.
  return readFileSync(file, 'utf8')
    .replace(/^Script started[^\n]*\n/, '')
    .replace(/\n*Script done[^]*$/, '');
}

/** The lines that a terminal shows: texts, line breaks, and the few movements of bars. */
function screen(written: string): string[] {
  const lines = [''];
  let [row, column] = [0, 0];
  const at = (line: string) => line.slice(0, column).padEnd(column);
  const moves: Readonly<Record<string, (count: string) => void>> = {
    '\r': () => (column = 0),
    '\n': () => (lines[++row] ??= ''),
    A: (count) => (row -= Number(count || 1)),
    G: (count) => (column = Number(count || 1) - 1),
    K: (count) => (lines[row] = count === '2' ? '' : at(lines[row])),
    J: () => lines.splice(row, lines.length, at(lines[row])),
  };
  for (const [token] of written.replaceAll(escape, '␛').matchAll(/␛\[\??\d*[A-Za-z]|\r|\n|[^␛\r\n]+/g)) {
    const [, count = '', command = ''] = /^␛\[\??(\d*)([A-Za-z])$/.exec(token) ?? [];
    if (command !== '' || /^[\r\n]$/.test(token)) {
      moves[command || token]?.(count);
      continue;
    }
    lines[row] = at(lines[row]) + token + lines[row].slice(column + token.length);
    column += token.length;
  }
  return lines.map((line) => line.trimEnd());
}

describe.skipIf(noTerminal !== undefined)('on a terminal', () => {
  const train = `$NODE $PROGRAM train $RATINGS ${quick.join(' ')} --device cpu --force --model-dir $FOLDER/model`;

  it('bars leave a piped stdout alone, and no line of their own', async () => {
    const written = await onTerminal(`${train} --json | cat > $FOLDER/result.json`);
    expect(written).toContain(`${escape}[?25l`);
    expect(written.lastIndexOf(`${escape}[?25h`)).toBeGreaterThan(written.lastIndexOf(`${escape}[?25l`));
    const result = readFileSync(join(folder, 'result.json'), 'utf8');
    expect(result).toMatch(/^\{"command":"train".*\}\n$/);
    const lines = screen(written);
    expect(lines.at(-1)).toBe('');
    expect(lines.slice(0, -1)).not.toContain('');
    expect(lines.filter((line) => line.includes('%')).every((line) => / 100% /.test(line))).toBe(true);
    expect(lines.filter((line) => line.startsWith('iteration '))).toHaveLength(2);
  });

  it('a result that is printed comes after them', async () => {
    const lines = screen(await onTerminal(train));
    const from = lines.findIndex((line) => line.startsWith('Trained ALS'));
    expect(from).toBeGreaterThan(0);
    expect(lines[from - 1]).not.toBe('');
    expect(lines.slice(from).join('\n')).toMatch(/\n {2}users .*\n[^]*\n {2}model /);
  });

  it('there is no control code on a stderr that is a file', async () => {
    await onTerminal(`${train} 2> $FOLDER/errors`);
    const errors = readFileSync(join(folder, 'errors'), 'utf8');
    expect(errors).toMatch(/^train: finished, 2 iterations/m);
    expect(errors).not.toContain(escape);
  });

  it('rows on it have nothing that it acts on, and rows in a pipe are as they are', async () => {
    writeFileSync(join(folder, 'red.csv'), 'user,text\n1,\u001b[31mred\u202e\n');
    const convert = `$NODE $PROGRAM convert $FOLDER/red.csv - --quiet --to`;
    expect(await onTerminal(`${convert} csv`)).toMatch(/1,\ufffd\[31mred\ufffd/);
    await onTerminal(`${convert} csv | cat > $FOLDER/piped.csv`);
    expect(readFileSync(join(folder, 'piped.csv'), 'utf8')).toContain('1,\u001b[31mred\u202e\n');
    expect(await onTerminal(`${convert} arrow || true`)).toContain(
      'Arrow is bytes, which a terminal cannot show',
    );
  });

  it('rows that are written to stdout are not drawn over', async () => {
    const model = await trainedModel();
    const some = await onTerminal(`$NODE $PROGRAM recommend ${model} --output - --to ndjson -n 1 | head -3`);
    expect(some).not.toContain(escape);
    expect(some.match(/^\{"user":\d+,/gm)).toHaveLength(3);
    const all = await onTerminal(
      `$NODE $PROGRAM recommend ${model} --output - --to ndjson -n 1 --users 1,2,3`,
    );
    expect(all).not.toContain(escape);
    expect(all.match(/^\{"user":\d+,/gm)).toHaveLength(3);
  });
});
