import cliProgress from 'cli-progress';
import { withoutControls } from '../../engine/format.ts';
import { Phases } from './lines.ts';
import type { Progress } from './open-progress.ts';
import { barText, iterationText, type PhaseState, warningText } from './phrases.ts';

interface Payload {
  readonly state: PhaseState;
}

/** Clears the rest of an older, longer line. */
const CLEAR_REST = '\u001b[K';

/**
 * A bar with rate and remaining time for each running phase; ended phases, iterations, notes and warnings
 * scroll away above. No colours.
 */
export function barProgress(stream: NodeJS.WriteStream): Progress {
  const phases = new Phases();
  const bars = new Map<string, cliProgress.SingleBar>();
  const width = Math.max(10, Math.min(30, (stream.columns ?? 80) - 70));
  const display = new cliProgress.MultiBar({
    stream,
    hideCursor: true,
    // A phase that still runs at the end leaves no line; ended phases have scrolled away.
    clearOnComplete: true,
    forceRedraw: true,
    // signals.ts handles the signals.
    gracefulExit: false,
    format: (_options: unknown, _params: unknown, payload: Payload) => barText(payload.state, width),
  });
  let closed = false;

  const say = (given: string) => {
    const text = withoutControls(given);
    if (display.isActive) display.log(`${text}${CLEAR_REST}\n`);
    else stream.write(`${text}\n`);
  };
  const draw = (state: PhaseState) => {
    const bar = bars.get(state.phase);
    if (state.ended) {
      say(barText(state, width));
      bars.delete(state.phase);
      if (bar !== undefined) display.remove(bar);
    } else if (bar === undefined) bars.set(state.phase, display.create(state.total ?? 0, 0, { state }));
    else bar.update(state.done, { state });
  };
  return {
    onEvent: (event) => {
      if (closed) return;
      if (event.type === 'iteration') say(iterationText(event));
      else if (event.type === 'note') say(event.text);
      else if (event.type === 'warning') say(warningText(event.text));
      else if (event.type !== 'plan') draw(phases.see(event).state);
    },
    expect: (phase, total) => phases.expect(phase, total),
    note: (text) => say(`factorflow: ${text}`),
    close: (outcome) => {
      if (closed) return;
      closed = true;
      if (outcome === 'done') for (const state of phases.closeAll()) draw(state);
      if (!display.isActive) return;
      // The last line is only written at the next redraw.
      display.update();
      display.stop();
    },
  };
}
