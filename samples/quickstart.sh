#!/bin/sh
# A real model through all seven stages: build | prune | place | partition, then run (training on real data),
# checkpoint and visualize. Uses the environment it is called in if graphmill is installed there, else makes
# .venv and installs into it. Everything it writes goes to quickstart-out/ (or the folder given as argument).
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
out=${1:-quickstart-out}

. "$here/environment.sh"
use_environment "$root" ""

echo "== build | prune | place | partition"
mkdir -p "$out"
rm -rf "$out/ckpt"  # start training anew
graphmill build "$here/digits_cnn.yaml" |
    graphmill prune --target train --fetch loss,accuracy,probabilities --feed x,y --keep-lifecycle |
    graphmill place --cluster "$here/cluster.yaml" --variables /job:ps --report "$out/placement.json" |
    graphmill partition -o "$out/parts"
graphmill inspect "$out/parts"

echo
echo "== run: train on 1,437 handwritten digits"
graphmill run "$out/parts" --target train --fetch loss \
    --feed x="$here/digits.npz:x_train" --feed y="$here/digits.npz:y_train" \
    --batch 64 --shuffle --seed 1 --steps 300 --log-steps 100 --checkpoint-dir "$out/ckpt" --save-steps 100

echo
echo "== run: accuracy on the 360 digits it has not seen (at least 0.97)"
graphmill run "$out/parts" --checkpoint "$(graphmill checkpoint latest "$out/ckpt")" --fetch accuracy \
    --feed x="$here/digits.npz:x_test" --feed y="$here/digits.npz:y_test"

echo
echo "== checkpoint"
graphmill checkpoint inspect "$out/ckpt"

echo
echo "== visualize"
graphmill visualize "$out/parts" -o "$out/digits.svg"
echo "the picture is $out/digits.svg"
