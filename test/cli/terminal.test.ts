/**
 * Progress on a terminal: bars are on stderr alone and are erased at the end. `script` of util-linux gives
 * the terminal.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { program, quick, ratings, trainedModel } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { Writable } from 'node:stream';
import { barProgress } from '../../cli/progress/bars.ts';
import { lineProgress, quietProgress, Phases } from '../../cli/progress/lines.ts';
import { barText, type PhaseState, seconds3, startText } from '../../cli/progress/phrases.ts';

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
    const all = await onTerminal(
      `$NODE $PROGRAM recommend ${model} --output - --to ndjson -n 1 --users 1,2,3`,
    );
    expect(all).not.toContain(escape);
    expect(all.match(/^\{"user":\d+,/gm)).toHaveLength(3);
  });
});

const state: PhaseState = {
  phase: 'read',
  done: 25,
  total: 100,
  estimated: false,
  unit: 'ratings',
  seconds: 2,
  ended: false,
};

describe('a bar', () => {
  it('shows part, rate and remaining time', () => {
    expect(barText(state, 20)).toBe(
      'read      [=====---------------]  25%  25/100 ratings  13 ratings/s  6.00 s left',
    );
  });

  it('is full at the end, for any expected total', () => {
    expect(barText({ ...state, done: 90, ended: true }, 10)).toBe(
      'read      [==========] 100%  90/90 ratings  45 ratings/s  2.00 s',
    );
  });

  it('counts where the total is unknown', () => {
    expect(barText({ ...state, total: undefined }, 10)).toBe('read      25 ratings  13 ratings/s  2.00 s');
  });

  it('shows slow rates as the time of one', () => {
    expect(
      barText({ ...state, phase: 'train', done: 2.5, total: 10, unit: 'iterations', seconds: 10 }, 8),
    ).toBe('train     [==------]  25%  2/10 iterations  4.00 s each  30.0 s left');
  });
});

describe('the line of a start', () => {
  it('has a number only where the total is known', () => {
    const started = { ...state, phase: 'evaluate', unit: 'pairs' };
    expect(startText({ ...started, total: 0, estimated: true })).toBe('evaluate: started');
    expect(startText({ ...started, total: undefined })).toBe('evaluate: started');
    expect(startText({ ...started, total: 0 })).toBe('evaluate: started, 0 pairs');
    expect(startText({ ...started, total: 1200, estimated: true })).toBe(
      'evaluate: started, about 1,200 pairs',
    );
  });
});

describe('seconds', () => {
  it('are short', () => {
    expect([0.123, 12.34, 200, 7500].map(seconds3)).toEqual(['0.12 s', '12.3 s', '3 min 20 s', '2 h 5 min']);
  });
});

describe('phases', () => {
  it('begin with their first progress and end with the run when their events say neither', () => {
    let now = 0;
    const phases = new Phases(() => now);
    phases.expect('evaluate', 50);
    expect(phases.see({ type: 'phase-progress', phase: 'evaluate', done: 5, unit: 'pairs' })).toMatchObject({
      begins: true,
      state: { total: 50, estimated: true, ended: false },
    });
    now = 3000;
    expect(phases.closeAll()).toMatchObject([{ phase: 'evaluate', done: 5, seconds: 3, ended: true }]);
    expect(phases.closeAll()).toEqual([]);
  });
});

describe('plain lines', () => {
  it('are few: starts, ends, iterations, notes and warnings', () => {
    const lines: string[] = [];
    const { onEvent, close } = lineProgress((line) => lines.push(line));
    onEvent({ type: 'phase-start', phase: 'train', total: 2, unit: 'iterations' });
    onEvent({ type: 'phase-progress', phase: 'train', done: 0.5, total: 2, unit: 'iterations' });
    onEvent({
      type: 'iteration',
      iteration: 1,
      of: 2,
      seconds: 0.5,
      loss: 12_345.6,
      trainRmse: 1,
      testRmse: 2,
    });
    onEvent({ type: 'note', text: 'enough' });
    onEvent({ type: 'phase-end', phase: 'train', seconds: 1, done: 1, unit: 'iterations' });
    onEvent({ type: 'warning', text: 'careful' });
    close('done');
    expect(lines).toEqual([
      'train: started, 2 iterations',
      'iteration 1/2: 0.50 s, loss 12,346, train RMSE 1.0000, test RMSE 2.0000',
      'enough',
      'train: finished, 1 iteration in 1.00 s',
      'factorflow: warning: careful',
    ]);
  });

  it('are warnings alone when quiet', () => {
    const lines: string[] = [];
    const { onEvent, note } = quietProgress((line) => lines.push(line));
    onEvent({ type: 'note', text: 'enough' });
    note('stopping');
    onEvent({ type: 'warning', text: 'careful' });
    expect(lines).toEqual(['factorflow: warning: careful']);
  });
});

describe('bars on a terminal', () => {
  it('let messages scroll above, and restore the terminal', () => {
    let written = '';
    const stream = Object.assign(
      new Writable({ write: (chunk, _encoding, done) => ((written += String(chunk)), done()) }),
      { isTTY: true, columns: 100 },
    );
    const { onEvent, note, close } = barProgress(stream as unknown as NodeJS.WriteStream);
    onEvent({ type: 'phase-start', phase: 'train', total: 2, unit: 'iterations' });
    onEvent({ type: 'iteration', iteration: 1, of: 2, seconds: 0.5, loss: 10, trainRmse: 1 });
    note('stopping');
    close('failed');
    close('failed');
    expect(written).toContain('iteration 1/2: 0.50 s, loss 10.000, train RMSE 1.0000');
    expect(written).toContain('factorflow: stopping');
    expect(written.match(/train +\[-+\] +0%/)).not.toBeNull();
    const [hidden, shown] = ['\u001b[?25l', '\u001b[?25h'];
    expect(written.lastIndexOf(shown)).toBeGreaterThan(written.lastIndexOf(hidden));
    expect(written.split('\u001b').some((part) => /^\[\d+m/.test(part))).toBe(false);
  });
});
