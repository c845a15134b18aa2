/**
 * The last call's opening, for which the next call waits: DRI_PRIME belongs to the whole process, so only one
 * card can be opened at a time.
 */
let last: Promise<unknown> = Promise.resolve();

/**
 * Opens the card with this PCI address. WebGPU cannot choose between two equal cards, but Mesa's
 * device-select layer lists the card first whose address is in the environment variable DRI_PRIME. So the
 * variable has the address while `open` runs, and the GPU's thread reads it when it creates its WebGPU
 * instance.
 */
export function withCard<Opened>(address: string, open: () => Promise<Opened>): Promise<Opened> {
  const opening = last.then(async () => {
    const before = process.env.DRI_PRIME;
    process.env.DRI_PRIME = `pci-${address.replaceAll(/[:.]/g, '_')}`;
    try {
      return await open();
    } finally {
      if (before === undefined) delete process.env.DRI_PRIME;
      else process.env.DRI_PRIME = before;
    }
  });
  last = opening.catch(() => undefined);
  return opening;
}
