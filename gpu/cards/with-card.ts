/**
 * The last opening. The environment variable belongs to the whole process, so cards are opened one at a time.
 */
let last: Promise<unknown> = Promise.resolve();

/**
 * Opens a GPU while an environment variable holds the PCI address of the card that Mesa's device-select layer
 * should list first. WebGPU itself cannot select one of two equal cards. The GPU's thread reads the variable
 * when it creates its WebGPU instance.
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
