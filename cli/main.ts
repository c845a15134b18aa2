#!/usr/bin/env node
import { tooOldNode } from './node-version.ts';

// Loads no other module before this check, since older versions could not parse it.
const problem = tooOldNode(process.versions.node);
if (problem === undefined) {
  const { runCli } = await import('./run-cli.ts');
  process.exitCode = await runCli(process.argv.slice(2));
} else {
  process.stderr.write(`factorflow: ${problem}\n`);
  process.exitCode = 2;
}
