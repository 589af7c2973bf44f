"""The same checkpoint as a PyTorch `transformers` model: what speed and results are compared with."""

from typing import Any

from specdec.checkpoints.checkpoint import Checkpoint
from specdec.errors import MissingExtraError, UnsupportedError


def as_transformers(checkpoint: Checkpoint) -> Any:
    """A float32 `LlamaForCausalLM` with the (dequantised) weights of a Llama-architecture checkpoint."""
    if checkpoint.config.family != "llama" or checkpoint.config.rope.scaling != "none":
        raise UnsupportedError("only plain Llama checkpoints can be compared with transformers here")
    try:
        import torch
        from transformers import LlamaForCausalLM
    except ImportError as error:
        raise MissingExtraError(error.name or "transformers", "bench") from error
    with torch.device("meta"):
        model = LlamaForCausalLM(_llama_config(checkpoint))
    weights = {name: torch.from_numpy(checkpoint.weights[name]) for name in checkpoint.weights}
    model.load_state_dict(weights, strict=False, assign=True)
    model.tie_weights()
    model.model.rotary_emb = type(model.model.rotary_emb)(config=model.config)
    model.train(mode=False)
    return model


def _llama_config(checkpoint: Checkpoint) -> Any:
    from transformers import LlamaConfig

    config = checkpoint.config
    return LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.context_length,
        rms_norm_eps=config.norm_eps,
        attention_bias=config.qkv_bias,
        mlp_bias=config.mlp_bias,
        tie_word_embeddings=config.tie_word_embeddings,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope.theta},
        bos_token_id=None,
        eos_token_id=None,
    )
