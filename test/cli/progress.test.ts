import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { barProgress } from '../../cli/progress/bars.ts';
import { lineProgress, quietProgress, Phases } from '../../cli/progress/lines.ts';
import { barText, type PhaseState, seconds3, startText } from '../../cli/progress/phrases.ts';

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
