import cliProgress from 'cli-progress';
import { Phases } from './phases.ts';
import { barText, iterationText, type PhaseState, warningText } from './phrases.ts';
import type { Progress } from './progress.ts';

interface Payload {
  readonly state: PhaseState;
}

/** A bar for each phase with rate and remaining time; iterations, notes and warnings scroll away above. No colours. */
export function barProgress(stream: NodeJS.WriteStream): Progress {
  const phases = new Phases();
  const bars = new Map<string, cliProgress.SingleBar>();
  const width = Math.max(10, Math.min(30, (stream.columns ?? 80) - 70));
  const display = new cliProgress.MultiBar({
    stream,
    hideCursor: true,
    // Signals are watched in one place.
    gracefulExit: false,
    format: (_options: unknown, _params: unknown, payload: Payload) => barText(payload.state, width),
  });
  let closed = false;

  const draw = (state: PhaseState) => {
    const bar = bars.get(state.phase);
    if (bar === undefined) bars.set(state.phase, display.create(state.total ?? 0, state.done, { state }));
    else bar.update(state.done, { state });
    if (state.ended) bars.delete(state.phase);
  };
  const say = (text: string) => {
    if (bars.size > 0 && !closed) display.log(`${text}\n`);
    else stream.write(`${text}\n`);
  };
  return {
    onEvent: (event) => {
      if (closed) return;
      if (event.type === 'iteration') say(iterationText(event));
      else if (event.type === 'note') say(event.text);
      else if (event.type === 'warning') say(warningText(event.text));
      else draw(phases.see(event).state);
    },
    expect: (phase, total) => phases.expect(phase, total),
    note: (text) => say(`factorflow: ${text}`),
    close: (outcome) => {
      if (closed) return;
      if (outcome === 'done') for (const state of phases.closeAll()) draw(state);
      closed = true;
      display.stop();
    },
  };
}
