import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Case } from '../harness.ts';
import { command } from '../processes.ts';

const whole: Case = {
  about:
    'Whole commands, by each build of --builds in turn: LINE is a command line such as "convert ' +
    'ratings.csv OUT.parquet", in which OUT is a path in an empty folder.',
  words: 'LINE...',
  columns: { whole: 's', processors: 's', peak: 'MiB' },
  rounds: 5,
  warmUp: 1,
  *rows(given) {
    for (const line of given.words) {
      const out = join(given.scratch, 'out');
      const args = line.split(' ').map((word) => word.replace(/^OUT\b/, out));
      const run = (main: string) => {
        for (const end of [
          '',
          ...args.filter((word) => word.startsWith(out)).map((word) => word.slice(out.length)),
        ])
          rmSync(out + end, { recursive: true, force: true });
        const { seconds, processor, peak } = command(main, args, given);
        return { whole: seconds, processors: processor, peak };
      };
      const builds = Object.entries(given.builds);
      yield {
        name: line,
        engines: Object.fromEntries(builds.map(([build, main]) => [build, () => run(main)])),
      };
    }
  },
};
export default whole;
